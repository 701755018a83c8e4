//! The figures of one bot during the measurement.

/// Which sort of bot it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// On the real client core: predicts, and knows every entity.
    Core,
    /// Only as much as makes a load.
    Light,
}

/// The figures of one bot. Those that its kind cannot measure are none.
pub struct Outcome {
    pub kind: Kind,
    /// Came in while the others were already being measured.
    pub late: bool,
    /// From the join request to the first snapshot.
    pub join_ms: f64,
    /// From one snapshot to the next.
    pub gaps_ms: Vec<f32>,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub messages_out: u64,
    pub seconds: f64,
    pub rtt_ms: Option<f64>,
    pub corrections: Option<u32>,
    /// How often it lost its connection and came back.
    pub returns: u32,
    /// How many it knew of, on average.
    pub entities: Option<f64>,
}

impl Outcome {
    /// Nothing seen yet.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            late: false,
            join_ms: 0.0,
            gaps_ms: Vec::new(),
            bytes_in: 0,
            bytes_out: 0,
            messages_out: 0,
            seconds: 0.0,
            rtt_ms: None,
            corrections: None,
            returns: 0,
            entities: None,
        }
    }
}
