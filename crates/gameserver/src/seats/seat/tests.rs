//! What each kind of client receives after a reconnect, to the same process or the
//! next.

use super::*;

/// How many messages are sent to a client that reconnects and has lost its count.
fn told_again(page: bool) -> usize {
    let mut seat = Seat::new(Identity::default(), "nonce".into(), ConnectionId::new(7, 1));
    let kick = ServerMessage::Kick {
        reason: String::new(),
    };
    for _ in 0..3 {
        seat.log_message(kick.clone(), None);
    }
    seat.log.tell_all();
    seat.log.confirm(1);
    let (resumption, sent) = seat.go_on(Resumption::Resumed, None, page);
    assert_eq!((resumption, sent), (Resumption::New, 0));
    std::iter::from_fn(|| seat.log.next_untold().map(|_| ())).count()
}

#[test]
fn a_reopened_page_receives_what_the_last_one_may_have_missed() {
    assert_eq!(told_again(true), 2);
    assert_eq!(told_again(false), 0, "it would have confirmed nothing");
}

fn say(seat: &mut Seat, text: &str) {
    let chat = ServerMessage::Chat {
        from: "Ada".into(),
        text: text.into(),
        player_id: String::new(),
    };
    seat.log_message(chat, None);
}

fn seat() -> Seat {
    Seat::new(Identity::default(), "nonce".into(), ConnectionId::new(7, 1))
}

/// The seat that continues with what is persisted of another, in another process.
fn heir(seat: &Seat, at: Cut, session: Option<String>) -> Seat {
    let saved = SavedPlayer {
        player_id: String::new(),
        state: Default::default(),
        online: true,
        session: seat.session.clone(),
        received: at.received,
        sent: at.sent,
        told: seat.left_to_tell(at, 1000),
    };
    let mut next = Seat::new(Identity::default(), "other".into(), ConnectionId::new(7, 2));
    next.inherit(saved, session);
    next
}

/// A seat of the next process: the first sent three messages, of which one was
/// acknowledged, and two more were queued.
fn next_seat(before: impl Fn(&mut Seat), session: impl Fn(&Seat) -> Option<String>) -> Seat {
    let mut seat = seat();
    for text in ["1", "2", "3"] {
        say(&mut seat, text);
    }
    seat.log.tell_all();
    before(&mut seat);
    for text in ["4", "5"] {
        say(&mut seat, text);
    }
    let at = Cut {
        received: 9,
        sent: seat.log.sent(),
    };
    heir(&seat, at, session(&seat))
}

fn tell_all(seat: &mut Seat) -> String {
    let mut told = String::new();
    while let Some((number, message)) = seat.log.next_untold() {
        let text = match &*message.message {
            ServerMessage::Chat { text, .. } => text.clone(),
            ServerMessage::InvokeResult { id, .. } => format!("call {id}"),
            other => panic!("{other:?}"),
        };
        told.push_str(&format!("{number}:{text} "));
    }
    told
}

#[test]
fn the_next_process_sends_each_kind_of_client_what_it_lacks() {
    use Resumption::{New, Restarted};
    let counts = |seat: &mut Seat| {
        seat.counts = true;
        seat.log.confirm(1);
    };
    let acknowledges = |seat: &mut Seat| seat.confirm(1);
    let neither = |_: &mut Seat| {};
    let same = |seat: &Seat| Some(seat.session.clone());
    let newer = |_: &Seat| Some("newer".to_owned());
    let unheard = |_: &Seat| None;
    struct Case<'a> {
        before: &'a dyn Fn(&mut Seat),
        session: &'a dyn Fn(&Seat) -> Option<String>,
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
            session: &unheard,
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
        let mut seat = next_seat(case.before, case.session);
        let asked = match seat.unheard {
            None => Restarted,
            Some(_) => New,
        };
        let (resumption, _) = seat.go_on(asked, case.received, case.page);
        let told = tell_all(&mut seat);
        let found = (resumption, seat.received, told.as_str());
        assert_eq!(found, case.expected, "case {place}");
    }
}

#[test]
fn a_call_is_answered_by_some_process_however_much_its_client_received_since() {
    for (received, told) in [(1, "2:call 5 "), (2, "3:call 5 "), (9, "10:call 5 ")] {
        let mut seat = seat();
        seat.counts = true;
        say(&mut seat, "1");
        seat.received = 1;
        seat.calls.taken(5, Some(1));
        let same = Some(seat.session.clone());
        let comes_back = |seat: &mut Seat| {
            let (resumption, sent) = seat.go_on(Resumption::Restarted, Some(received), true);
            assert_eq!((resumption, sent), (Resumption::Restarted, received));
            assert_eq!(tell_all(seat), told);
        };
        let mut next = heir(&seat, seat.cut(), same.clone());
        comes_back(&mut next);
        // That process also ends before it has persisted anything of its own.
        let mut third = heir(&next, next.kept, same);
        comes_back(&mut third);
        let mut fourth = heir(&third, third.cut(), Some(third.session.clone()));
        fourth.go_on(Resumption::Restarted, Some(received), true);
        assert_eq!(tell_all(&mut fourth), told, "once, from one process");
    }
}

#[test]
fn a_call_not_persisted_as_received_is_not_persisted_as_answered() {
    let mut seat = seat();
    seat.counts = true;
    say(&mut seat, "1");
    let before = Cut {
        received: 1,
        sent: 1,
    };
    seat.calls.taken(5, Some(2));
    let kept = |seat: &Seat, at| {
        let log = KeptLog::from_bytes(&seat.left_to_tell(at, 1000), &|_| true).unwrap();
        (log.messages.len(), log.calls.len())
    };
    assert_eq!(kept(&seat, before), (1, 0));
    let heard = Cut {
        received: 2,
        sent: 1,
    };
    assert_eq!(kept(&seat, heard), (1, 1));
    let answer = ServerMessage::InvokeResult {
        id: 5,
        result: Err(String::new()),
    };
    assert_eq!(seat.answered(&answer), None);
    seat.log_message(answer, None);
    // Scripts may wait for the store meanwhile: an earlier moment is persisted
    // again.
    seat.note_kept(heard);
    assert_eq!(kept(&seat, heard), (1, 1), "its answer is not");
    let answered = Cut {
        received: 2,
        sent: 2,
    };
    assert_eq!(kept(&seat, answered), (2, 0));
    seat.note_kept(answered);
    assert_eq!(seat.calls.len(), 0);
}

#[test]
fn persisted_messages_have_their_new_numbers() {
    let mut seat = seat();
    seat.counts = true;
    for text in ["1", "2", "3"] {
        say(&mut seat, text);
    }
    seat.log.tell_all();
    seat.log.confirm(1);
    seat.note_kept(Cut {
        received: 4,
        sent: 2,
    });
    let session = seat.session.clone();
    seat.go_on(Resumption::New, None, true);
    // Of the two that remain, one was persisted: a checkpoint of that moment has
    // it.
    let expected = Cut {
        received: 0,
        sent: 1,
    };
    assert_eq!(seat.kept, expected);
    assert_ne!(seat.session, session);
    let log = KeptLog::from_bytes(&seat.left_to_tell(seat.kept, 1000), &|_| true).unwrap();
    assert_eq!((log.base, log.messages.len()), (0, 1));
}

#[test]
fn calls_take_a_fraction_of_a_checkpoint() {
    let mut seat = seat();
    seat.counts = true;
    for number in 1..=400 {
        let label = serde_json::Value::from("\u{1}".repeat(64));
        let id = seat.calls.label(Box::new(label));
        seat.calls.taken(id, Some(number));
    }
    say(&mut seat, "hello");
    assert_eq!(seat.calls.len(), 256);
    let at = Cut {
        received: 400,
        sent: 1,
    };
    let bytes = seat.left_to_tell(at, 4000);
    assert!(bytes.len() < 1200, "{}", bytes.len());
    let log = KeptLog::from_bytes(&bytes, &|_| true).unwrap();
    assert_eq!((log.messages.len(), log.calls.len()), (1, 2));
}

#[test]
fn a_page_without_acknowledgements_receives_again_what_it_may_have_missed() {
    for (page, kept) in [(true, 1), (false, 0)] {
        let mut seat = seat();
        seat.go_on(Resumption::New, None, page);
        say(&mut seat, "1");
        seat.log.tell_all();
        let told = seat.left_to_tell(seat.cut(), 1000);
        let log = KeptLog::from_bytes(&told, &|_| true).unwrap();
        assert_eq!((log.base + kept, log.messages.len()), (1, kept as usize));
    }
}

#[test]
fn a_page_in_another_tab_receives_what_the_closed_one_may_have_missed() {
    // Without a token: it was lost with the tab.
    for (page, told) in [(true, "1:2 2:3 "), (false, "")] {
        let mut seat = seat();
        seat.go_on(Resumption::New, None, page);
        for text in ["1", "2", "3"] {
            say(&mut seat, text);
        }
        seat.log.tell_all();
        seat.log.confirm(1);
        seat.note_heard();
        seat.go_on(Resumption::New, None, page);
        assert_eq!(tell_all(&mut seat), told);
    }
}
