//! Packages made to do harm are refused by the rule that they break, and never panic.

use super::fixtures::{SCENE_JSON, ZipEntry, game, gzip, read, tar, tar_entry, zip, zip_entries};
use frolic_package::{Limits, Package, Rule, pack};
use proptest::prelude::*;

/// The small game with one more entry is refused by this rule.
fn check_entry(entry: ZipEntry, rule: Rule) {
    let name = String::from_utf8_lossy(&entry.central_name).into_owned();
    let mut entries = zip_entries();
    entries.push(entry);
    check_zip(&entries, rule, &name);
}

fn check_zip(entries: &[ZipEntry], rule: Rule, what: &str) {
    check_archive(&zip(entries), rule, what);
}

fn check_archive(archive: &[u8], rule: Rule, what: &str) {
    match read(archive) {
        Ok(_) => panic!("{what:?} was accepted; it breaks {}", rule.name()),
        Err(report) => assert!(report.broke(rule), "{what:?}: {report}"),
    }
}

#[test]
fn the_fixtures_themselves_are_accepted() {
    read(&zip(&zip_entries())).unwrap();
    let mut entries = zip_entries();
    entries[1] = ZipEntry::deflated("scene.json", SCENE_JSON.as_bytes());
    entries[2] = ZipEntry::zstd("scripts/Workspace/A.luau", b"print(1)");
    entries.push(ZipEntry {
        mode: 0o040_755,
        ..ZipEntry::stored("assets/", b"")
    });
    read(&zip(&entries)).unwrap();
    read(&gzip(&tar(&game(&[])))).unwrap();
}

#[test]
fn bad_names_are_refused() {
    for (name, rule) in [
        ("../evil.luau", Rule::PathTraversal),
        ("assets/../../evil.png", Rule::PathTraversal),
        ("/etc/passwd", Rule::AbsolutePath),
        ("C:/evil.luau", Rule::AbsolutePath),
        ("assets\\..\\evil.png", Rule::Backslash),
        ("assets/nul.png", Rule::ReservedName),
        ("assets/a\0.png", Rule::InvalidName),
        ("assets//a.png", Rule::InvalidName),
        ("assets/.hidden.png", Rule::InvalidName),
        ("", Rule::InvalidName),
        ("game.toml", Rule::DuplicateName),
        ("GAME.toml", Rule::CaseCollision),
        ("Scripts/Workspace/a.luau", Rule::CaseCollision),
        ("scripts", Rule::FileAndFolder),
        ("game.toml/a.png", Rule::FileAndFolder),
        ("run.sh", Rule::UnexpectedFile),
        ("assets/page.html", Rule::UnexpectedFile),
        ("scripts/Main.luau", Rule::UnexpectedFile),
        ("scripts/Nowhere/Main.luau", Rule::UnexpectedFile),
        ("spells/a.luau", Rule::UnexpectedFile),
    ] {
        check_entry(ZipEntry::stored(name, b"x"), rule);
    }
    let not_utf8 = ZipEntry {
        central_name: b"assets/\xff.png".to_vec(),
        local_name: b"assets/\xff.png".to_vec(),
        ..ZipEntry::stored("", b"x")
    };
    check_entry(not_utf8, Rule::InvalidName);
}

#[test]
fn special_files_and_odd_zips_are_refused() {
    let script = ZipEntry::stored("scripts/Workspace/A.luau", b"print(1)");
    for mode in [0o120_777, 0o020_644, 0o010_644, 0o040_755] {
        let special = ZipEntry {
            mode,
            ..script.clone()
        };
        check_entry(special, Rule::SpecialFile);
    }
    for flags in [1, 1 << 6, 1 << 13] {
        let encrypted = ZipEntry {
            flags,
            ..script.clone()
        };
        check_entry(encrypted, Rule::UnsupportedArchive);
    }
    for method in [1, 9, 12, 14, 99] {
        let unknown = ZipEntry {
            method,
            ..script.clone()
        };
        check_entry(unknown, Rule::UnsupportedArchive);
    }
}

#[test]
fn lies_are_refused() {
    let text = b"print('a script that is long enough to be deflated: aaaaaaaaaaaaaaaaaaaaaa')";
    let honest = ZipEntry::deflated("scripts/Workspace/A.luau", text);
    let longer = ZipEntry {
        unpacked_bytes: honest.unpacked_bytes + 1,
        ..honest.clone()
    };
    let shorter = ZipEntry {
        unpacked_bytes: honest.unpacked_bytes - 1,
        ..honest.clone()
    };
    let wrong_crc = ZipEntry {
        crc: honest.crc ^ 1,
        ..honest.clone()
    };
    let other_name = ZipEntry {
        local_name: b"scripts/Workspace/B.luau".to_vec(),
        ..honest.clone()
    };
    let far_away = ZipEntry {
        offset: Some(u32::MAX),
        ..honest.clone()
    };
    let folder = ZipEntry {
        mode: 0,
        ..ZipEntry::stored("assets/", b"data")
    };
    let stored = ZipEntry {
        method: 0,
        ..honest.clone()
    };
    for lie in [
        longer, shorter, wrong_crc, other_name, far_away, folder, stored,
    ] {
        check_entry(lie, Rule::LyingSize);
    }
    let garbage = ZipEntry {
        data: vec![0xff; honest.data.len()],
        ..honest
    };
    check_entry(garbage, Rule::NotAnArchive);
}

fn extra(id: u16, data: &[u8]) -> Vec<u8> {
    let mut field = id.to_le_bytes().to_vec();
    field.extend((data.len() as u16).to_le_bytes());
    field.extend(data);
    field
}

fn unicode_path(name: &str) -> Vec<u8> {
    let mut data = vec![1, 0, 0, 0, 0];
    data.extend(name.as_bytes());
    extra(0x7075, &data)
}

fn zip64(values: &[u64]) -> Vec<u8> {
    let data: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    extra(0x0001, &data)
}

#[test]
fn extra_fields_that_contradict_their_entry_are_refused() {
    let name = "scripts/Workspace/A.luau";
    let honest = ZipEntry::stored(name, b"print(1)");
    let agreeing = [unicode_path(name), zip64(&[8, 8]), extra(0x5455, &[3; 9])].concat();
    let mut entries = zip_entries();
    entries.push(ZipEntry {
        local_extra: agreeing.clone(),
        central_extra: agreeing,
        ..honest.clone()
    });
    read(&zip(&entries)).unwrap();
    for (field, rule) in [
        (
            unicode_path("scripts/Workspace/B.luau"),
            Rule::ConflictingName,
        ),
        (unicode_path("../../etc/passwd"), Rule::ConflictingName),
        (extra(0x7075, b"\x01"), Rule::ConflictingName),
        (
            [unicode_path(name), unicode_path("game.toml")].concat(),
            Rule::ConflictingName,
        ),
        (zip64(&[9]), Rule::LyingSize),
        (zip64(&[8, 1 << 40]), Rule::LyingSize),
        (zip64(&[8, 8, 1]), Rule::LyingSize),
        (vec![0x75, 0x70, 9, 0, 1], Rule::NotAnArchive),
        (vec![0x75], Rule::NotAnArchive),
    ] {
        let local = ZipEntry {
            local_extra: field.clone(),
            ..honest.clone()
        };
        check_entry(local, rule);
        let central = ZipEntry {
            central_extra: field,
            ..honest.clone()
        };
        check_entry(central, rule);
    }
}

#[test]
fn a_descriptor_agrees_with_the_directory() {
    let honest = ZipEntry {
        flags: 1 << 3,
        ..ZipEntry::stored("scripts/Workspace/A.luau", b"print(1)")
    };
    let descriptor = |crc: u32, packed: u32, unpacked: u32| -> Vec<u8> {
        let fields = [0x0807_4b50, crc, packed, unpacked];
        fields.into_iter().flat_map(u32::to_le_bytes).collect()
    };
    let mut entries = zip_entries();
    entries.push(ZipEntry {
        descriptor: descriptor(honest.crc, 8, 8),
        ..honest.clone()
    });
    read(&zip(&entries)).unwrap();
    for lie in [
        descriptor(honest.crc ^ 1, 8, 8),
        descriptor(honest.crc, 9, 8),
        descriptor(honest.crc, 8, 9),
    ] {
        let lying = ZipEntry {
            descriptor: lie,
            ..honest.clone()
        };
        check_entry(lying, Rule::LyingSize);
    }
    let hidden = ZipEntry {
        descriptor: vec![7; 16],
        ..honest
    };
    check_entry(hidden, Rule::OverlappingEntries);
}

/// Nothing of these archives can be decompressed: a reader that reads content before sizes reports that instead.
#[test]
fn scripts_over_their_limits_are_refused_before_any_content_is_read() {
    let declared = |name: String, bytes: u32| ZipEntry {
        unpacked_bytes: bytes,
        data: vec![0xff; 2000],
        packed_bytes: 2000,
        ..ZipEntry::deflated(&name, b"")
    };
    let script = |index| format!("scripts/Workspace/S{index}.luau");
    let many: Vec<ZipEntry> = (0..2000)
        .map(|index| declared(script(index), 240 << 10))
        .collect();
    let spells = (0..2000).map(|index| declared(format!("spells/s{index}/spell.luau"), 240 << 10));
    let texts = (0..2000).map(|index| declared(format!("notes/{index}.txt"), 240 << 10));
    for entries in [
        many,
        spells.collect(),
        texts.collect(),
        vec![declared(script(0), 257 << 10)],
        vec![declared("scene.json".to_owned(), 65 << 20)],
        vec![declared("game.toml".to_owned(), 65 << 10)],
    ] {
        let report = read(&zip(&entries)).unwrap_err();
        assert!(report.broke(Rule::FileSize), "{report}");
        assert!(
            !report.broke(Rule::NotAnArchive),
            "content was read: {report}"
        );
        assert!(!report.broke(Rule::LyingSize), "content was read: {report}");
    }
}

#[test]
fn overlapping_and_hidden_bytes_are_refused() {
    let mut entries = zip_entries();
    // Two entries of the directory share one local entry.
    let again = ZipEntry {
        offset: Some(0),
        ..entries[0].clone()
    };
    entries.push(again);
    check_zip(&entries, Rule::DuplicateName, "shared entry");
    // An entry whose data contains the next entry, as an overlap bomb has.
    let inner = ZipEntry::stored("scripts/Workspace/B.luau", b"print(2)");
    let inner_bytes = {
        let whole = zip(std::slice::from_ref(&inner));
        whole[..30 + inner.local_name.len() + inner.data.len()].to_vec()
    };
    let outer = ZipEntry::stored("scripts/Workspace/A.luau", &inner_bytes);
    let mut entries = zip_entries();
    let before: usize = entries
        .iter()
        .map(|e| 30 + e.local_name.len() + e.data.len())
        .sum();
    let inside = before + 30 + outer.local_name.len();
    entries.push(outer);
    entries.push(ZipEntry {
        offset: Some(inside as u32),
        ..inner
    });
    check_zip(&entries, Rule::OverlappingEntries, "overlap");
    let honest = zip(&zip_entries());
    let mut polyglot = honest.clone();
    polyglot.splice(0..0, *b"PK\x03\x04 hidden");
    check_archive(&polyglot, Rule::NotAnArchive, "bytes before");
    let mut trailing = honest.clone();
    trailing.extend(b"hidden");
    check_archive(&trailing, Rule::NotAnArchive, "bytes after");
    // An end record that counts one entry fewer than there are.
    let mut hidden = honest;
    let end = hidden.len() - 22;
    hidden[end + 8] -= 1;
    hidden[end + 10] -= 1;
    check_archive(&hidden, Rule::NotAnArchive, "hidden entry");
}

#[test]
fn bombs_are_refused_before_they_are_unpacked() {
    let zeroes = vec![0; 8 << 20];
    check_entry(
        ZipEntry::deflated("assets/a.png", &zeroes),
        Rule::CompressionRatio,
    );
    check_entry(
        ZipEntry::zstd("assets/a.png", &zeroes),
        Rule::CompressionRatio,
    );
    // One that lies about its size gets no further than the size it admits to.
    let modest = ZipEntry {
        unpacked_bytes: 1000,
        ..ZipEntry::deflated("assets/a.png", &zeroes)
    };
    check_entry(modest, Rule::LyingSize);
    let boastful = ZipEntry {
        unpacked_bytes: u32::MAX,
        ..ZipEntry::deflated("assets/a.png", b"x")
    };
    check_entry(boastful, Rule::FileSize);
    let many: Vec<ZipEntry> = (0..600)
        .map(|index| {
            let name = format!("assets/{index}.png");
            ZipEntry::deflated(&name, &zeroes[..1 << 20])
        })
        .collect();
    check_zip(&many, Rule::UnpackedSize, "many small bombs");
    check_archive(
        &gzip(&zeroes),
        Rule::CompressionRatio,
        "bomb after the end of a tar",
    );
    let bomb = tar(&game(&[("assets/a.png", &zeroes)]));
    check_archive(&gzip(&bomb), Rule::CompressionRatio, "gzip bomb");
    let zstd_bomb = zstd::encode_all(zeroes.as_slice(), 19).unwrap();
    check_archive(&zstd_bomb, Rule::CompressionRatio, "zstd bomb");
}

#[test]
fn limits_are_kept() {
    let archive = pack(&game(&[])).unwrap();
    let limited = |limits: Limits| Package::read(&archive, &limits).unwrap_err();
    let packed = limited(Limits {
        packed_bytes_max: 100,
        ..Limits::default()
    });
    assert!(packed.broke(Rule::PackedSize));
    let unpacked = limited(Limits {
        unpacked_bytes_max: 100,
        ..Limits::default()
    });
    assert!(unpacked.broke(Rule::UnpackedSize));
    let entries = limited(Limits {
        entries_max: 2,
        ..Limits::default()
    });
    assert!(entries.broke(Rule::EntryCount));
    let file = limited(Limits {
        file_bytes_max: 50,
        ..Limits::default()
    });
    assert!(file.broke(Rule::FileSize));
    let script = limited(Limits {
        script_bytes_max: 5,
        ..Limits::default()
    });
    assert!(script.broke(Rule::FileSize));
    let scripts = limited(Limits {
        scripts_bytes_max: 5,
        ..Limits::default()
    });
    assert!(scripts.broke(Rule::FileSize));
}

#[test]
fn hostile_tars_are_refused() {
    use tar::EntryType;
    for (name, kind, rule) in [
        (&b"../evil"[..], EntryType::Regular, Rule::PathTraversal),
        (b"/etc/passwd", EntryType::Regular, Rule::AbsolutePath),
        (b"a\\b", EntryType::Regular, Rule::Backslash),
        (b"link", EntryType::Symlink, Rule::SpecialFile),
        (b"link", EntryType::Link, Rule::SpecialFile),
        (b"device", EntryType::Block, Rule::SpecialFile),
        (b"pipe", EntryType::Fifo, Rule::SpecialFile),
        (b"sparse", EntryType::GNUSparse, Rule::SpecialFile),
    ] {
        let archive = gzip(&tar_entry(name, kind, b""));
        check_archive(&archive, rule, &String::from_utf8_lossy(name));
    }
    let endless_name = tar_entry(b"x", EntryType::GNULongName, &[b'a'; 100_000]);
    check_archive(&gzip(&endless_name), Rule::InvalidName, "endless name");
    let mut twice = tar(&game(&[]));
    twice.truncate(twice.len() - 1024);
    twice.extend(tar_entry(b"game.toml", EntryType::Regular, b"other"));
    check_archive(&gzip(&twice), Rule::DuplicateName, "twice");
    let mut huge = tar_entry(b"assets/a.png", EntryType::Regular, b"");
    huge[124..136].copy_from_slice(b"77777777777\0");
    let mut header = tar::Header::new_ustar();
    header.as_mut_bytes().copy_from_slice(&huge[..512]);
    header.set_cksum();
    huge[..512].copy_from_slice(header.as_bytes());
    check_archive(&gzip(&huge), Rule::FileSize, "huge");
    check_archive(&gzip(b"not a tar at all"), Rule::NotAnArchive, "text");
    let mut damaged = gzip(&tar(&game(&[])));
    let checksum = damaged.len() - 8;
    damaged[checksum] ^= 1;
    check_archive(&damaged, Rule::NotAnArchive, "wrong gzip checksum");
}

#[test]
fn what_is_not_an_archive_gets_one_clear_sentence() {
    for bytes in [
        &b""[..],
        b"PK",
        b"PK\x03\x04",
        b"\x1f\x8b",
        b"\x28\xb5\x2f\xfd",
        b"hello",
    ] {
        let report = read(bytes).unwrap_err();
        assert!(report.has_errors(), "{bytes:?}");
    }
    let text = read(b"hello, I am not a game").unwrap_err();
    assert!(text.broke(Rule::NotAnArchive));
    assert!(text.to_string().contains("frolic pack"), "{text}");
}

fn archives() -> [Vec<u8>; 4] {
    let files = game(&[]);
    let mut zstd_entries = zip_entries();
    zstd_entries[1] = ZipEntry::zstd("scene.json", SCENE_JSON.as_bytes());
    [
        pack(&files).unwrap(),
        zip(&zstd_entries),
        gzip(&tar(&files)),
        zstd::encode_all(tar(&files).as_slice(), 3).unwrap(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn damaged_archives_never_panic(
        which in 0..4_usize,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut archive = archives()[which].clone();
        for (index, byte) in damage {
            let at = index.index(archive.len());
            archive[at] = byte;
        }
        if let Some(cut) = cut {
            let length = cut.index(archive.len());
            archive.truncate(length);
        }
        let _ = read(&archive);
    }

    #[test]
    fn damaged_tars_never_panic(
        damage in prop::collection::vec((0..2048_usize, any::<u8>()), 1..6),
    ) {
        let mut tar = tar(&game(&[]));
        for (at, byte) in damage {
            tar[at] = byte;
        }
        let _ = read(&gzip(&tar));
    }

    #[test]
    fn random_bytes_behind_a_good_start_never_panic(
        magic in prop::sample::select(vec![
            &b"PK\x03\x04"[..], b"\x1f\x8b\x08\0\0\0\0\0\0\x03", b"\x28\xb5\x2f\xfd",
        ]),
        bytes in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let _ = read(&[magic, &bytes].concat());
    }
}
