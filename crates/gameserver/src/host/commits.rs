//! Commands that are applied already, and answered once their effect is persisted.

use frolic_fleet_api::remote_commands::OutsideReply;
use tokio::sync::oneshot;

use crate::connection::ConnectionId;
use crate::sessions::Sessions;

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

impl Requester {
    /// The command's effect is persisted.
    pub fn acknowledge(self, sessions: &mut Sessions) {
        match self {
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

#[cfg(test)]
mod tests {
    use frolic_world::CommitGate;

    use super::*;

    #[test]
    fn an_answer_waits_for_its_operation_and_no_longer() {
        let (mut gate, mut sessions) = (CommitGate::default(), Sessions::default());
        let mut release = |gate: &mut CommitGate<Requester>, op| {
            gate.release(op)
                .for_each(|requester| requester.acknowledge(&mut sessions));
        };
        let mut answers = [3, 5].map(|op| {
            let (answer, reply) = oneshot::channel();
            gate.hold(op, Requester::Outside(answer));
            reply
        });
        release(&mut gate, 2);
        assert!(answers[0].try_recv().is_err(), "not persisted");
        release(&mut gate, 4);
        assert_eq!(answers[0].try_recv(), Ok(OutsideReply::Done));
        assert!(answers[1].try_recv().is_err());
        release(&mut gate, 5);
        assert_eq!(answers[1].try_recv(), Ok(OutsideReply::Done));
    }
}
