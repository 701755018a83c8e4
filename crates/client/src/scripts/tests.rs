//! Which scripts a client accepts, which it refuses, and which it need not request.

use super::*;
use frolic_protocol::script::content_url;
use frolic_protocol::signature::ManifestSigner;

fn entry(path: &str, service: &str, code: &[u8]) -> ScriptEntry {
    let hash = hash_of(code);
    ScriptEntry {
        path: path.into(),
        url: content_url(&hash),
        hash,
        size_bytes: code.len() as u32,
        run_context: RunContext::Client,
        service: service.into(),
        lazy: false,
        module: false,
        entities: Vec::new(),
    }
}

const FIRST: &str = "ReplicatedFirst/Logo.luau";
const HUD: &str = "StarterGui/Hud.luau";
const LATER: &str = "ReplicatedStorage/Later.luau";

fn list() -> ScriptList {
    let mut later = entry(LATER, "ReplicatedStorage", b"later");
    later.lazy = true;
    ScriptList {
        game_id: "obby".into(),
        revision: "ab".into(),
        scripts: vec![
            entry("@builtin/a", "Builtin", b"builtin"),
            entry(FIRST, "ReplicatedFirst", b"first"),
            later,
            entry(HUD, "StarterGui", b"hud"),
        ],
        bundles: Vec::new(),
    }
}

fn announced(list: &ScriptList) -> (ScriptManifest, Vec<u8>) {
    let text = serde_json::to_vec(list).unwrap();
    let hash = hash_of(&text);
    let manifest = ScriptManifest {
        version: 1,
        url: content_url(&hash),
        size_bytes: text.len() as u32,
        signature: signer().sign(&list.game_id, &hash),
        hash,
        ..ScriptManifest::default()
    };
    (manifest, text)
}

fn signer() -> ManifestSigner {
    ManifestSigner::new(&[5; 32])
}

fn trusting() -> Scripts {
    let mut scripts = Scripts::default();
    scripts.trust(Trust {
        key: signer().public_key(),
        game_id: "obby".into(),
    });
    scripts
}

/// A client that has the list.
fn listed(list: &ScriptList) -> Scripts {
    let mut scripts = trusting();
    let (manifest, text) = announced(list);
    scripts.announce(manifest).unwrap();
    assert!(matches!(
        scripts.offer(MANIFEST_PATH, text),
        Ok(ChunkOutcome::List)
    ));
    scripts
}

fn chunks(path: &str, content: &[u8], pieces: usize) -> Vec<ScriptChunk> {
    let compressed = zstd::bulk::compress(content, 1).unwrap();
    let size = compressed.len().div_ceil(pieces);
    let total = compressed.len().div_ceil(size) as u32;
    let pieces = compressed.chunks(size).enumerate();
    pieces
        .map(|(index, data)| ScriptChunk {
            path: path.into(),
            index: index as u32,
            total,
            data: data.to_vec(),
        })
        .collect()
}

fn refusal<T>(result: Result<T, String>) -> String {
    match result {
        Ok(_) => panic!("this should have been refused"),
        Err(cause) => cause,
    }
}

#[test]
fn only_what_the_platform_signed_for_this_game_counts() {
    let (good, text) = announced(&list());
    let mut scripts = trusting();
    assert_eq!(scripts.announce(good.clone()), Ok(()));
    for tampered in [
        ScriptManifest {
            signature: String::new(),
            ..good.clone()
        },
        ScriptManifest {
            hash: hash_of(b"another list"),
            ..good.clone()
        },
        ScriptManifest {
            signature: signer().sign("arena", &good.hash),
            ..good.clone()
        },
        ScriptManifest {
            signature: ManifestSigner::new(&[6; 32]).sign("obby", &good.hash),
            ..good.clone()
        },
    ] {
        let cause = refusal(trusting().announce(tampered));
        assert!(cause.contains("did not sign"), "{cause}");
    }
    // The right signature, but another list.
    let mut other = text.clone();
    let at = other.iter().position(|&b| b == b'H').unwrap();
    other[at] = b'h';
    let cause = refusal(scripts.offer(MANIFEST_PATH, other));
    assert!(cause.contains("does not match its hash"), "{cause}");
    assert!(scripts.list().is_none());
    // A client without a platform accepts any; that is for this machine only.
    let unsigned = ScriptManifest {
        signature: String::new(),
        ..good
    };
    assert_eq!(Scripts::default().announce(unsigned), Ok(()));
}

#[test]
fn tampered_bytes_are_refused_and_requested_again_a_few_times() {
    let mut scripts = listed(&list());
    for chunk in chunks(HUD, b"bad", 1) {
        let cause = refusal(scripts.chunk(chunk));
        assert!(cause.contains("does not match its hash"), "{cause}");
    }
    assert_eq!(scripts.bytecode(HUD), None);
    assert!(scripts.may_retry(HUD) && scripts.may_retry(HUD));
    assert!(!scripts.may_retry(HUD), "not for ever");
    let bomb = chunks(HUD, &vec![0; 1 << 20], 1).remove(0);
    let cause = refusal(scripts.chunk(bomb));
    assert!(cause.contains("more than 3 bytes"), "{cause}");
    let cause = refusal(scripts.offer("StarterGui/Extra.luau", b"x".to_vec()));
    assert!(cause.contains("not in the manifest"), "{cause}");
}

#[test]
fn a_script_of_the_server_is_refused() {
    let mut secret = list();
    secret.scripts[3].run_context = RunContext::Server;
    let mut scripts = listed(&secret);
    assert!(
        scripts
            .list()
            .unwrap()
            .scripts
            .iter()
            .all(|e| e.path != HUD)
    );
    refusal(scripts.offer(HUD, b"hud".to_vec()));
    refusal(scripts.run(HUD, RunContext::Client));
}

#[test]
fn a_client_with_all_scripts_confirms_in_one_message_and_requests_nothing() {
    let mut scripts = listed(&list());
    for (path, code) in [
        ("@builtin/a", &b"builtin"[..]),
        (FIRST, b"first"),
        (HUD, b"hud"),
    ] {
        scripts.offer(path, code.to_vec()).unwrap();
        assert_eq!(scripts.confirmations(), [], "not before all was offered");
    }
    let missing = scripts.missing();
    assert_eq!(missing.len(), 1);
    assert!(missing[0].lazy && missing[0].path == LATER);
    let said = scripts.confirmations();
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].path, MANIFEST_PATH);
    assert_eq!(scripts.confirmations(), [], "once");
    let due = scripts.run_all().unwrap();
    assert_eq!(due.start, ["@builtin/a", FIRST, HUD]);
}

#[test]
fn first_scripts_are_confirmed_before_the_rest_arrives() {
    let mut scripts = listed(&list());
    assert_eq!(scripts.missing().len(), 4);
    scripts.offer("@builtin/a", b"builtin".to_vec()).unwrap();
    assert_eq!(scripts.confirmations(), []);
    scripts.offer(FIRST, b"first".to_vec()).unwrap();
    let said: Vec<String> = scripts
        .confirmations()
        .into_iter()
        .map(|c| c.path)
        .collect();
    assert_eq!(said, ["@builtin/a", FIRST]);
    for path in ["@builtin/a", FIRST] {
        scripts.run(path, RunContext::Client).unwrap();
    }
    scripts.offer(HUD, b"hud".to_vec()).unwrap();
    assert_eq!(scripts.confirmations()[0].path, MANIFEST_PATH);
    assert_eq!(
        scripts.run_all().unwrap().start,
        [HUD],
        "the others run already"
    );
}

#[test]
fn a_broken_download_continues_at_the_missing_chunk_on_the_next_connection() {
    let content: Vec<u8> = (0..9000u32)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    let mut list = list();
    list.scripts[3] = entry(HUD, "StarterGui", &content);
    let mut scripts = listed(&list);
    let pieces = chunks(HUD, &content, 5);
    for piece in &pieces[..3] {
        assert!(matches!(
            scripts.chunk(piece.clone()),
            Ok(ChunkOutcome::Waiting)
        ));
    }
    let mut again = Scripts::default();
    again.take_over(&mut scripts);
    let (manifest, text) = announced(&list);
    again.announce(manifest).unwrap();
    again.offer(MANIFEST_PATH, text).unwrap();
    assert_eq!(again.resume_at(HUD), 3);
    for piece in &pieces[3..] {
        again.chunk(piece.clone()).unwrap();
    }
    assert_eq!(again.bytecode(HUD), Some(content.as_slice()));
}

#[test]
fn a_bundle_travels_as_one_and_each_script_in_it_is_verified() {
    let mut list = list();
    let whole = b"firsthud".to_vec();
    list.bundles.push(ScriptBundle {
        name: "core".into(),
        hash: hash_of(&whole),
        size_bytes: 8,
        url: "/cdn/x".into(),
        scripts: vec![FIRST.into(), HUD.into()],
    });
    let mut scripts = listed(&list);
    let missing: Vec<String> = scripts.missing().into_iter().map(|u| u.path).collect();
    assert_eq!(missing, ["@builtin/a", "@bundle/core", LATER]);
    for piece in chunks("@bundle/core", &whole, 1) {
        let Ok(ChunkOutcome::Verified(paths)) = scripts.chunk(piece) else {
            panic!("the bundle is complete");
        };
        assert_eq!(paths.len(), 2);
    }
    assert_eq!(scripts.bytecode(HUD), Some(&b"hud"[..]));
    // A module that can wait, and a script that cannot: the bundle is needed.
    list.bundles[0].scripts = vec![LATER.into(), HUD.into()];
    let unit = listed(&list)
        .missing()
        .into_iter()
        .find(|u| u.path == "@bundle/core");
    assert!(unit.is_some_and(|unit| !unit.lazy));
    list.bundles[0].scripts = vec![FIRST.into(), HUD.into()];
    // A bundle with a valid hash of its own, and invalid scripts.
    list.bundles[0].scripts.reverse();
    let mut scripts = listed(&list);
    let cause = refusal(scripts.offer("@bundle/core", whole));
    assert!(cause.contains("does not match its hash"), "{cause}");
    assert_eq!(scripts.bytecode(HUD), None, "all or nothing");
}

#[test]
fn a_new_list_replaces_only_what_changed() {
    let mut scripts = listed(&list());
    for (path, code) in [
        ("@builtin/a", &b"builtin"[..]),
        (FIRST, b"first"),
        (HUD, b"hud"),
    ] {
        scripts.offer(path, code.to_vec()).unwrap();
    }
    scripts.run_all().unwrap();
    let mut next = list();
    next.scripts[3] = entry(HUD, "StarterGui", b"hud 2");
    next.scripts.remove(1);
    next.scripts
        .push(entry("StarterGui/New.luau", "StarterGui", b"new"));
    let (manifest, text) = announced(&next);
    scripts.announce(manifest).unwrap();
    scripts.offer(MANIFEST_PATH, text).unwrap();
    let missing: Vec<String> = scripts.missing().into_iter().map(|u| u.path).collect();
    assert_eq!(missing, [HUD, "StarterGui/New.luau", LATER]);
    scripts.offer(HUD, b"hud 2".to_vec()).unwrap();
    assert_eq!(scripts.confirmations(), [], "all or nothing");
    scripts
        .offer("StarterGui/New.luau", b"new".to_vec())
        .unwrap();
    assert_eq!(scripts.confirmations()[0].path, MANIFEST_PATH);
    let due = scripts.run_all().unwrap();
    assert_eq!(due.start, Vec::<String>::new());
    assert_eq!(due.changed, [HUD, "StarterGui/New.luau"]);
    assert_eq!(due.removed, [FIRST]);
}
