//! What each kind of client receives after a reconnect, to the same process or the
//! next.

use super::*;

/// How many messages are sent to a client that reconnects and has lost its count.
fn sent_again(page: bool) -> usize {
    let mut player_session =
        PlayerSession::new(Identity::default(), "nonce".into(), ConnectionId::new(7, 1));
    let kick = ServerMessage::Kick {
        reason: String::new(),
    };
    for _ in 0..3 {
        player_session.log_message(kick.clone(), None);
    }
    player_session.log.mark_all_written();
    player_session.log.confirm(1);
    let (resumption, sent) = player_session.go_on(Resumption::Resumed, None, page);
    assert_eq!((resumption, sent), (Resumption::New, 0));
    std::iter::from_fn(|| player_session.log.next_unwritten().map(|_| ())).count()
}

#[test]
fn a_reopened_page_receives_what_the_last_one_may_have_missed() {
    assert_eq!(sent_again(true), 2);
    assert_eq!(sent_again(false), 0, "it would have confirmed nothing");
}

fn say(player_session: &mut PlayerSession, text: &str) {
    let chat = ServerMessage::Chat {
        from: "Ada".into(),
        text: text.into(),
        player_id: String::new(),
    };
    player_session.log_message(chat, None);
}

fn new_session() -> PlayerSession {
    PlayerSession::new(Identity::default(), "nonce".into(), ConnectionId::new(7, 1))
}

/// Restores in another process what is persisted of a session.
fn heir(player_session: &PlayerSession, at: Cut, session: Option<String>) -> PlayerSession {
    let saved = SavedPlayer {
        player_id: String::new(),
        state: Default::default(),
        online: true,
        session: player_session.session.clone(),
        received: at.received,
        sent: at.sent,
        undelivered: player_session.undelivered(at, 1000),
    };
    let mut next = PlayerSession::new(Identity::default(), "other".into(), ConnectionId::new(7, 2));
    next.inherit(saved, session);
    next
}

/// A session of the next process: the first sent three messages, of which one was
/// acknowledged, and two more were queued.
fn restored_session(
    before: impl Fn(&mut PlayerSession),
    session: impl Fn(&PlayerSession) -> Option<String>,
) -> PlayerSession {
    let mut player_session = new_session();
    for text in ["1", "2", "3"] {
        say(&mut player_session, text);
    }
    player_session.log.mark_all_written();
    before(&mut player_session);
    for text in ["4", "5"] {
        say(&mut player_session, text);
    }
    let at = Cut {
        received: 9,
        sent: player_session.log.sent(),
    };
    heir(&player_session, at, session(&player_session))
}

fn send_all(player_session: &mut PlayerSession) -> String {
    let mut sent = String::new();
    while let Some((number, message)) = player_session.log.next_unwritten() {
        let text = match &*message.message {
            ServerMessage::Chat { text, .. } => text.clone(),
            ServerMessage::InvokeResult { id, .. } => format!("call {id}"),
            other => panic!("{other:?}"),
        };
        sent.push_str(&format!("{number}:{text} "));
    }
    sent
}

#[test]
fn the_next_process_sends_each_kind_of_client_what_it_lacks() {
    use Resumption::{New, Restarted};
    let counts = |player_session: &mut PlayerSession| {
        player_session.counts = true;
        player_session.log.confirm(1);
    };
    let acknowledges = |player_session: &mut PlayerSession| player_session.confirm(1);
    let neither = |_: &mut PlayerSession| {};
    let same = |player_session: &PlayerSession| Some(player_session.session.clone());
    let newer = |_: &PlayerSession| Some("newer".to_owned());
    let unconfirmed = |_: &PlayerSession| None;
    struct Case<'a> {
        before: &'a dyn Fn(&mut PlayerSession),
        session: &'a dyn Fn(&PlayerSession) -> Option<String>,
        received: Option<u32>,
        page: bool,
        expected: (Resumption, u32, &'a str),
    }
    let case = |before, received, expected| Case {
        before,
        session: &same,
        received,
        page: false,
        expected,
    };
    let cases = [
        // A client that counts gets what follows its count, whatever was sent.
        case(&counts, Some(2), (Restarted, 9, "3:3 4:4 5:5 ")),
        case(&counts, Some(7), (Restarted, 9, "")),
        // A page that was closed and opened again starts over.
        Case {
            page: true,
            ..case(&counts, None, (New, 0, "1:2 2:3 3:4 4:5 "))
        },
        // A client that acknowledges snapshots may receive some messages again; one
        // that does neither gets only what was never sent. No number means two
        // things.
        case(&acknowledges, None, (Restarted, 9, "1:2 2:3 3:4 4:5 ")),
        case(&neither, None, (Restarted, 9, "1:4 2:5 ")),
        // A session that began without any client knowing of it.
        Case {
            session: &unconfirmed,
            page: true,
            ..case(&counts, None, (New, 0, "1:2 2:3 3:4 4:5 "))
        },
        // One that began in the last moment, with what the previous one had left:
        // what was sent in it is sent again.
        Case {
            session: &newer,
            page: true,
            ..case(&counts, Some(2), (Restarted, 0, "3:4 4:5 "))
        },
        Case {
            session: &newer,
            page: true,
            ..case(&counts, Some(6), (Restarted, 0, ""))
        },
        // A count that is out of range.
        case(&counts, Some(u32::MAX), (New, 0, "1:4 2:5 ")),
    ];
    for (place, case) in cases.into_iter().enumerate() {
        let mut player_session = restored_session(case.before, case.session);
        let asked = match player_session.unconfirmed {
            None => Restarted,
            Some(_) => New,
        };
        let (resumption, _) = player_session.go_on(asked, case.received, case.page);
        let sent = send_all(&mut player_session);
        let found = (resumption, player_session.received, sent.as_str());
        assert_eq!(found, case.expected, "case {place}");
    }
}

#[test]
fn a_call_is_answered_by_some_process_however_much_its_client_received_since() {
    for (received, texts) in [(1, "2:call 5 "), (2, "3:call 5 "), (9, "10:call 5 ")] {
        let mut player_session = new_session();
        player_session.counts = true;
        say(&mut player_session, "1");
        player_session.received = 1;
        player_session.calls.taken(5, Some(1));
        let same = Some(player_session.session.clone());
        let comes_back = |player_session: &mut PlayerSession| {
            let (resumption, sent) =
                player_session.go_on(Resumption::Restarted, Some(received), true);
            assert_eq!((resumption, sent), (Resumption::Restarted, received));
            assert_eq!(send_all(player_session), texts);
        };
        let mut next = heir(&player_session, player_session.cut(), same.clone());
        comes_back(&mut next);
        // That process also ends before it has persisted anything of its own.
        let mut third = heir(&next, next.progress.persisted(), same);
        comes_back(&mut third);
        let mut fourth = heir(&third, third.cut(), Some(third.session.clone()));
        fourth.go_on(Resumption::Restarted, Some(received), true);
        assert_eq!(send_all(&mut fourth), texts, "once, from one process");
    }
}

#[test]
fn a_call_not_persisted_as_received_is_not_persisted_as_answered() {
    let mut player_session = new_session();
    player_session.counts = true;
    say(&mut player_session, "1");
    let before = Cut {
        received: 1,
        sent: 1,
    };
    player_session.calls.taken(5, Some(2));
    let persisted = |player_session: &PlayerSession, at| {
        let log =
            PersistedLog::from_bytes(&player_session.undelivered(at, 1000), &|_| true).unwrap();
        (log.messages.len(), log.calls.len())
    };
    assert_eq!(persisted(&player_session, before), (1, 0));
    let handled = Cut {
        received: 2,
        sent: 1,
    };
    assert_eq!(persisted(&player_session, handled), (1, 1));
    let answer = ServerMessage::InvokeResult {
        id: 5,
        result: Err(String::new()),
    };
    assert_eq!(player_session.answered(&answer), None);
    player_session.log_message(answer, None);
    // Scripts may wait for the store meanwhile: an earlier moment is persisted
    // again.
    player_session.note_persisted(handled, 1);
    assert_eq!(
        persisted(&player_session, handled),
        (1, 1),
        "its answer is not"
    );
    let answered = Cut {
        received: 2,
        sent: 2,
    };
    assert_eq!(persisted(&player_session, answered), (2, 0));
    player_session.note_persisted(answered, 1);
    assert_eq!(player_session.calls.len(), 0);
}

#[test]
fn persisted_messages_have_their_new_numbers() {
    let mut player_session = new_session();
    player_session.counts = true;
    for text in ["1", "2", "3"] {
        say(&mut player_session, text);
    }
    player_session.log.mark_all_written();
    player_session.log.confirm(1);
    let cut = Cut {
        received: 4,
        sent: 2,
    };
    player_session.note_persisted(cut, 1);
    let session = player_session.session.clone();
    player_session.go_on(Resumption::New, None, true);
    // Of the two that remain, one was persisted: a checkpoint of that moment has
    // it.
    let expected = Cut {
        received: 0,
        sent: 1,
    };
    assert_eq!(player_session.progress.persisted(), expected);
    assert_ne!(player_session.session, session);
    let log = PersistedLog::from_bytes(
        &player_session.undelivered(player_session.progress.persisted(), 1000),
        &|_| true,
    )
    .unwrap();
    assert_eq!((log.base, log.messages.len()), (0, 1));
}

#[test]
fn calls_take_a_fraction_of_a_checkpoint() {
    let mut player_session = new_session();
    player_session.counts = true;
    for number in 1..=400 {
        let label = serde_json::Value::from("\u{1}".repeat(64));
        let id = player_session.calls.label(Box::new(label));
        player_session.calls.taken(id, Some(number));
    }
    say(&mut player_session, "hello");
    assert_eq!(player_session.calls.len(), 256);
    let at = Cut {
        received: 400,
        sent: 1,
    };
    let bytes = player_session.undelivered(at, 4000);
    assert!(bytes.len() < 1200, "{}", bytes.len());
    let log = PersistedLog::from_bytes(&bytes, &|_| true).unwrap();
    assert_eq!((log.messages.len(), log.calls.len()), (1, 2));
}

#[test]
fn a_page_without_acknowledgements_receives_again_what_it_may_have_missed() {
    for (page, persisted) in [(true, 1), (false, 0)] {
        let mut player_session = new_session();
        player_session.go_on(Resumption::New, None, page);
        say(&mut player_session, "1");
        player_session.log.mark_all_written();
        let sent = player_session.undelivered(player_session.cut(), 1000);
        let log = PersistedLog::from_bytes(&sent, &|_| true).unwrap();
        assert_eq!(
            (log.base + persisted, log.messages.len()),
            (1, persisted as usize)
        );
    }
}

#[test]
fn a_page_in_another_tab_receives_what_the_closed_one_may_have_missed() {
    // Without a token: it was lost with the tab.
    for (page, sent) in [(true, "1:2 2:3 "), (false, "")] {
        let mut player_session = new_session();
        player_session.go_on(Resumption::New, None, page);
        for text in ["1", "2", "3"] {
            say(&mut player_session, text);
        }
        player_session.log.mark_all_written();
        player_session.log.confirm(1);
        player_session.note_received();
        player_session.go_on(Resumption::New, None, page);
        assert_eq!(send_all(&mut player_session), sent);
    }
}
