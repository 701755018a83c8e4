//! Commands that are applied already, and answered once their effect is persisted.

use std::collections::VecDeque;

use frolic_fleet_api::remote_commands::OutsideReply;
use tokio::sync::oneshot;

use crate::connection::ConnectionId;
use crate::sessions::Sessions;

/// The answers that wait for persistence, in the order of their operations. Their
/// number is bounded by the operations that may wait.
#[derive(Default)]
pub(super) struct CommitGate {
    waiting: VecDeque<(u64, Requester)>,
}

/// The receiver of an answer.
pub(super) enum Requester {
    /// A client that numbers its commands.
    Client {
        /// Its connection.
        connection_id: ConnectionId,
        /// The number of the command.
        seq: u32,
    },
    /// A user outside of the world, through the control plane.
    Outside(oneshot::Sender<OutsideReply>),
}

impl CommitGate {
    /// Answers `requester` once operation `op` is persisted.
    pub fn answer_after(&mut self, op: u64, requester: Requester) {
        self.waiting.push_back((op, requester));
    }

    /// Answers the commands whose operations are persisted.
    pub fn open(&mut self, persisted_op: u64, sessions: &mut Sessions) {
        while let Some((_, requester)) = self.waiting.pop_front_if(|(op, _)| *op <= persisted_op) {
            match requester {
                Requester::Client { connection_id, seq } => {
                    if let Some(session) = sessions.get_mut(connection_id) {
                        session.answer(Some(seq), Ok(()));
                    }
                }
                // The caller may have given up.
                Requester::Outside(answer) => drop(answer.send(OutsideReply::Done)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_waits_for_its_operation_and_no_longer() {
        let (mut gate, mut sessions) = (CommitGate::default(), Sessions::default());
        let mut answers = [3, 5].map(|op| {
            let (answer, reply) = oneshot::channel();
            gate.answer_after(op, Requester::Outside(answer));
            reply
        });
        gate.open(2, &mut sessions);
        assert!(answers[0].try_recv().is_err(), "not persisted");
        gate.open(4, &mut sessions);
        assert_eq!(answers[0].try_recv(), Ok(OutsideReply::Done));
        assert!(answers[1].try_recv().is_err());
        gate.open(5, &mut sessions);
        assert_eq!(answers[1].try_recv(), Ok(OutsideReply::Done));
    }
}
