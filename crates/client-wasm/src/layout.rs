//! The records that cross to the page as flat arrays of floats. Each is declared once:
//! the declaration writes it, and gives the page the place of every field
//! (`web/src/generated/layout.ts`).

/// Declares records, by the number of floats of each field.
macro_rules! records {
    ($($(#[$about:meta])* $name:ident { $($field:ident: $floats:literal,)* })*) => {
        $(
            $(#[$about])*
            pub(crate) struct $name {
                $(pub $field: [f32; $floats],)*
            }

            impl $name {
                /// Appends the record.
                pub fn write(&self, out: &mut Vec<f32>) {
                    $(out.extend(self.$field);)*
                }
            }
        )*

        /// Every record, with the number of floats of each field.
        #[cfg(test)]
        const RECORDS: &[(&str, &[(&str, usize)])] =
            &[$((stringify!($name), &[$((stringify!($field), $floats)),*])),*];
    };
}

records! {
    /// An entity of a frame.
    Frame {
        // The bits of the float are the number.
        id: 1,
        kind: 1,
        // 0: an entity of the scene.
        definition: 1,
        flags: 1,
        position: 3,
        rotation: 4,
        velocity: 3,
        yaw: 1,
        pitch: 1,
    }

    /// A shot in flight.
    Shot {
        // Stays the same while it is drawn.
        key: 1,
        weapon: 1,
        position: 3,
        velocity: 3,
        own: 1,
    }
}

/// Values of [`Frame::kind`].
pub(crate) mod kind {
    pub const CHARACTER: u16 = 1;
    pub const THING: u16 = 2;
}

/// Bits of [`Frame::flags`]; those above are the mood of an NPC.
pub(crate) mod flag {
    pub const GROUNDED: u16 = 1;
    pub const OWN: u16 = 1 << 1;
    pub const DEAD: u16 = 1 << 2;
    pub const MOOD_SHIFT: u16 = 3;
}

/// Vectors of an entity, for `entity_vector`.
pub(crate) mod vector {
    pub const POSITION: u8 = 0;
    pub const VELOCITY: u8 = 1;
    /// In degrees around x, y and z.
    pub const ROTATION: u8 = 2;
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::path::PathBuf;

    use frolic_client::Liveness;
    use frolic_sim::Buttons;

    use super::*;

    fn constants() -> Vec<(String, usize)> {
        let mut all = Vec::new();
        for (record, fields) in RECORDS {
            let mut at = 0;
            for (field, floats) in *fields {
                all.push((format!("{record}_{field}"), at));
                at += floats;
            }
            all.push((format!("{record}_stride"), at));
        }
        for (name, value) in [
            ("kind_character", kind::CHARACTER),
            ("kind_thing", kind::THING),
            ("flag_grounded", flag::GROUNDED),
            ("flag_own", flag::OWN),
            ("flag_dead", flag::DEAD),
            ("mood_shift", flag::MOOD_SHIFT),
            ("vector_position", vector::POSITION.into()),
            ("vector_velocity", vector::VELOCITY.into()),
            ("vector_rotation", vector::ROTATION.into()),
            ("button_jump", Buttons::JUMP.0.into()),
            ("button_run", Buttons::RUN.0.into()),
            ("button_fire", Buttons::FIRE.0.into()),
            ("button_interact", Buttons::INTERACT.0.into()),
            ("liveness_alive", crate::number_of(Liveness::Alive).into()),
            (
                "liveness_stalled",
                crate::number_of(Liveness::Stalled).into(),
            ),
            ("liveness_lost", crate::number_of(Liveness::Lost).into()),
        ] {
            all.push((name.to_owned(), value.into()));
        }
        all
    }

    #[test]
    fn export_bindings_layout() {
        let mut text = "// The numbers that the client core and the page exchange: places of fields in records, \
            flags and states.\n// Generated from crates/client-wasm/src/layout.rs; do not edit.\n"
            .to_owned();
        for (name, value) in constants() {
            let name = name.to_uppercase();
            writeln!(text, "export const {name} = {value};").expect("a string takes everything");
        }
        if let Some(folder) = std::env::var_os("TS_RS_EXPORT_DIR").map(PathBuf::from) {
            std::fs::create_dir_all(&folder).expect("the folder can be made");
            std::fs::write(folder.join("layout.ts"), text).expect("the file can be written");
        }
    }
}
