//! A small valid game, and ways to write archives that a kind tool would not write.

use std::collections::BTreeMap;
use std::io::Write;

use frolic_package::{Limits, Package, Report};

pub(crate) type Files = BTreeMap<String, Vec<u8>>;

pub(crate) const GAME_TOML: &str = "[game]\nid = \"tiny\"\nname = \"Tiny\"\n";
pub(crate) const SCENE_JSON: &str = r#"{"format": 1, "entities": [
    {"id": 1, "name": "Spawn", "components": {"SpawnPoint": {}}}]}"#;

/// The smallest game with a script, and then what is added.
pub(crate) fn game(extra: &[(&str, &[u8])]) -> Files {
    let base: [(&str, &[u8]); 3] = [
        ("game.toml", GAME_TOML.as_bytes()),
        ("scene.json", SCENE_JSON.as_bytes()),
        ("scripts/ServerScriptService/Main.luau", b"print(\"hi\")\n"),
    ];
    base.iter()
        .chain(extra)
        .map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec()))
        .collect()
}

pub(crate) fn read(archive: &[u8]) -> Result<Package, Report> {
    Package::read(archive, &Limits::default())
}

/// An entry of a hand-made zip. What is left alone is honest.
#[derive(Clone)]
pub(crate) struct ZipEntry {
    pub(crate) local_name: Vec<u8>,
    pub(crate) central_name: Vec<u8>,
    pub(crate) data: Vec<u8>,
    pub(crate) method: u16,
    pub(crate) flags: u16,
    pub(crate) crc: u32,
    pub(crate) packed_bytes: u32,
    pub(crate) unpacked_bytes: u32,
    pub(crate) mode: u32,
    /// Where the directory says the entry is, when not where it is.
    pub(crate) offset: Option<u32>,
    pub(crate) local_extra: Vec<u8>,
    pub(crate) central_extra: Vec<u8>,
    /// Bytes behind the data.
    pub(crate) descriptor: Vec<u8>,
}

impl ZipEntry {
    pub(crate) fn stored(name: &str, data: &[u8]) -> Self {
        ZipEntry {
            local_name: name.into(),
            central_name: name.into(),
            data: data.to_vec(),
            method: 0,
            flags: 0,
            crc: crc32(data),
            packed_bytes: data.len() as u32,
            unpacked_bytes: data.len() as u32,
            mode: 0o100_644,
            offset: None,
            local_extra: vec![],
            central_extra: vec![],
            descriptor: vec![],
        }
    }

    pub(crate) fn deflated(name: &str, data: &[u8]) -> Self {
        let mut encoder =
            flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(data).unwrap();
        ZipEntry::compressed(name, data, 8, encoder.finish().unwrap())
    }

    pub(crate) fn zstd(name: &str, data: &[u8]) -> Self {
        ZipEntry::compressed(name, data, 93, zstd::encode_all(data, 3).unwrap())
    }

    fn compressed(name: &str, data: &[u8], method: u16, packed: Vec<u8>) -> Self {
        ZipEntry {
            method,
            packed_bytes: packed.len() as u32,
            data: packed,
            ..ZipEntry::stored(name, data)
        }
    }
}

/// The entries of the small game, stored.
pub(crate) fn zip_entries() -> Vec<ZipEntry> {
    let files = game(&[]);
    let entries = files
        .iter()
        .map(|(path, bytes)| ZipEntry::stored(path, bytes));
    entries.collect()
}

/// Writes a zip field by field.
pub(crate) fn zip(entries: &[ZipEntry]) -> Vec<u8> {
    let (mut out, mut directory) = (vec![], vec![]);
    for entry in entries {
        let offset = entry.offset.unwrap_or(out.len() as u32);
        let common = |out: &mut Vec<u8>, name: &[u8], extra: &[u8]| {
            for field in [20, entry.flags, entry.method, 0, 33] {
                out.extend(u16::to_le_bytes(field));
            }
            for field in [entry.crc, entry.packed_bytes, entry.unpacked_bytes] {
                out.extend(u32::to_le_bytes(field));
            }
            out.extend(u16::to_le_bytes(name.len() as u16));
            out.extend(u16::to_le_bytes(extra.len() as u16));
        };
        out.extend(b"PK\x03\x04");
        common(&mut out, &entry.local_name, &entry.local_extra);
        out.extend(&entry.local_name);
        out.extend(&entry.local_extra);
        out.extend(&entry.data);
        out.extend(&entry.descriptor);
        directory.extend(b"PK\x01\x02\x14\x03");
        common(&mut directory, &entry.central_name, &entry.central_extra);
        directory.extend([0; 6]);
        directory.extend(u32::to_le_bytes(entry.mode << 16));
        directory.extend(u32::to_le_bytes(offset));
        directory.extend(&entry.central_name);
        directory.extend(&entry.central_extra);
    }
    let directory_at = out.len() as u32;
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(u16::to_le_bytes(entries.len() as u16));
    out.extend(u16::to_le_bytes(entries.len() as u16));
    out.extend(u32::to_le_bytes(directory.len() as u32));
    out.extend(u32::to_le_bytes(directory_at));
    out.extend([0, 0]);
    out
}

/// A tar of the files with `./` before each path, as `tar c .` writes them.
pub(crate) fn tar(files: &Files) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder
            .append_data(&mut header, format!("./{path}"), bytes.as_slice())
            .unwrap();
    }
    builder.into_inner().unwrap()
}

/// One raw tar entry with any name and type, and the end of the archive.
pub(crate) fn tar_entry(name: &[u8], kind: tar::EntryType, data: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name);
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(data.len() as u64);
    header.set_cksum();
    let mut out = header.as_bytes().to_vec();
    out.extend(data);
    out.resize(out.len().next_multiple_of(512) + 1024, 0);
    out
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
