//! What each kind of client is told after a return, to the same process or the next.

use super::*;

/// What is told to a client that comes back and has forgotten its count.
fn told_again(page: bool) -> usize {
    let mut seat = Seat::new(Identity::default(), "nonce".into(), LinkId::new(7, 1));
    let kick = ServerMessage::Kick {
        reason: String::new(),
    };
    let told = |message: &ServerMessage| Told {
        echo: None,
        message: message.clone().into(),
    };
    for _ in 0..3 {
        seat.log.push(told(&kick), 1);
    }
    seat.log.tell_all();
    seat.log.confirm(1);
    let (resumption, sent) = seat.go_on(Resumption::Resumed, None, page);
    assert_eq!((resumption, sent), (Resumption::New, 0));
    std::iter::from_fn(|| seat.log.next_untold().map(|_| ())).count()
}

#[test]
fn a_page_that_is_opened_again_hears_what_the_last_one_may_have_missed() {
    assert_eq!(told_again(true), 2);
    assert_eq!(told_again(false), 0, "it would have confirmed nothing");
}

fn chat(text: &str) -> Told {
    Told {
        echo: None,
        message: Arc::new(ServerMessage::Chat {
            from: "Ada".into(),
            text: text.into(),
            player_id: String::new(),
        }),
    }
}

/// A seat of the next process: the first was told three messages, of which
/// one was confirmed, and two more came up.
fn next_seat(before: impl Fn(&mut Seat), same_session: bool) -> Seat {
    let mut seat = Seat::new(Identity::default(), "nonce".into(), LinkId::new(7, 1));
    for text in ["1", "2", "3"] {
        seat.log.push(chat(text), 10);
    }
    seat.log.tell_all();
    before(&mut seat);
    for text in ["4", "5"] {
        seat.log.push(chat(text), 10);
    }
    seat.kept_sent = seat.log.sent();
    let saved = SavedPlayer {
        player_id: String::new(),
        state: Default::default(),
        online: true,
        session: seat.session.clone(),
        received: 9,
        told: seat.left_to_tell(1000),
    };
    let mut next = Seat::new(Identity::default(), "other".into(), LinkId::new(7, 2));
    next.inherit(saved, same_session);
    next
}

fn tell_all(seat: &mut Seat) -> String {
    let mut told = String::new();
    while let Some((number, message)) = seat.log.next_untold() {
        let ServerMessage::Chat { text, .. } = &*message.message else {
            panic!("not a chat");
        };
        told.push_str(&format!("{number}:{text} "));
    }
    told
}

#[test]
fn net_9_the_next_process_tells_each_kind_of_client_what_it_lacks() {
    use Resumption::{New, Restarted};
    let counts = |seat: &mut Seat| {
        seat.counts = true;
        seat.log.confirm(1);
    };
    let acknowledges = |seat: &mut Seat| seat.confirm(1);
    let neither = |_: &mut Seat| {};
    struct Case<'a> {
        before: &'a dyn Fn(&mut Seat),
        same_session: bool,
        received: Option<u32>,
        page: bool,
        expected: (Resumption, &'a str),
    }
    let case = |before, received, expected| Case {
        before,
        same_session: true,
        received,
        page: false,
        expected,
    };
    let cases = [
        // Who counts gets what is behind that, whatever was told.
        case(&counts, Some(2), (Restarted, "3:3 4:4 5:5 ")),
        case(&counts, Some(7), (Restarted, "")),
        // A page that was closed and opened again begins anew.
        Case {
            page: true,
            ..case(&counts, None, (New, "1:2 2:3 3:4 4:5 "))
        },
        // Who acknowledges snapshots may hear some again; who does neither gets
        // what was told to nobody. No number means two things.
        case(&acknowledges, None, (Restarted, "1:2 2:3 3:4 4:5 ")),
        case(&neither, None, (Restarted, "1:4 2:5 ")),
        // A session that began when nobody heard of it any more.
        Case {
            same_session: false,
            page: true,
            ..case(&counts, None, (New, "1:2 2:3 3:4 4:5 "))
        },
        // A count that nobody has.
        case(&counts, Some(u32::MAX), (New, "1:4 2:5 ")),
    ];
    for case in cases {
        let mut seat = next_seat(case.before, case.same_session);
        let asked = match case.same_session {
            true => Restarted,
            false => New,
        };
        let (resumption, _) = seat.go_on(asked, case.received, case.page);
        let told = tell_all(&mut seat);
        assert_eq!((resumption, told.as_str()), case.expected);
        let heard = if resumption == Restarted { 9 } else { 0 };
        assert_eq!(seat.received, heard);
    }
}

#[test]
fn what_is_not_kept_as_heard_is_not_kept_as_answered() {
    let mut seat = Seat::new(Identity::default(), "nonce".into(), LinkId::new(7, 1));
    seat.counts = true;
    seat.log.push(chat("1"), 10);
    seat.kept_sent = 1;
    seat.note_call(5, 2);
    seat.log.push(chat("answer to what is said again"), 10);
    let read = |seat: &Seat| KeptLog::from_bytes(&seat.left_to_tell(1000), &|_| true);
    let kept = read(&seat).unwrap();
    assert_eq!((kept.messages.len(), kept.calls.len()), (1, 0));
    (seat.kept_sent, seat.kept_received) = (2, 2);
    let kept = read(&seat).unwrap();
    assert_eq!((kept.messages.len(), kept.calls.len()), (2, 1));
    let answer = ServerMessage::InvokeResult {
        id: 5,
        result: Err(String::new()),
    };
    assert_eq!(seat.answered(&answer), None);
    assert!(read(&seat).unwrap().calls.is_empty());
}

#[test]
fn a_page_that_has_confirmed_nothing_yet_is_told_again_what_it_may_have_missed() {
    for (page, kept) in [(true, 1), (false, 0)] {
        let mut seat = Seat::new(Identity::default(), "nonce".into(), LinkId::new(7, 1));
        seat.go_on(Resumption::New, None, page);
        seat.log.push(chat("1"), 10);
        seat.log.tell_all();
        seat.kept_sent = 1;
        let log = KeptLog::from_bytes(&seat.left_to_tell(1000), &|_| true).unwrap();
        assert_eq!((log.base + kept, log.messages.len()), (1, kept as usize));
    }
}
