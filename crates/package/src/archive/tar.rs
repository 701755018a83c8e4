//! Reads a decompressed tar stream, such as `tar czf game.tar.gz .` makes. Only for reading: what
//! the platform stores is always the zip.

use std::io::{self, Read};

use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::{Budget, Files, is_bomb, read_sized};
use crate::names::{PathSet, check_path};
use crate::{Limits, Problem, Report, Rule};
use frolic_scene::text::shown;

/// Long names come in entries of their own; no allowed path is anywhere near this.
const LONG_NAME_BYTES_MAX: u64 = 8 << 10;
/// Bytes that tar adds to each file: a header, padding, possibly a long name.
const OVERHEAD_BYTES_PER_ENTRY: u64 = 4 << 10;

pub(super) fn read(stream: impl Read, packed_bytes: u64, limits: &Limits) -> Result<Files, Report> {
    let overhead = OVERHEAD_BYTES_PER_ENTRY.saturating_mul(limits.entries_max as u64);
    let mut bounded = Bounded {
        stream,
        packed_bytes,
        read_bytes: 0,
        read_bytes_max: limits.unpacked_bytes_max.saturating_add(overhead),
        limits,
        broken: None,
    };
    let mut reader = Reader {
        files: Files::new(),
        paths: PathSet::default(),
        budget: Budget::new(limits),
        report: Report::new(limits),
        long_name: None,
    };
    let outcome = reader.entries(&mut bounded, limits);
    if let Some(rule) = bounded.broken {
        let message = match rule {
            Rule::CompressionRatio => {
                format!("unpacks to more than {} times its size", limits.ratio_max)
            }
            _ => format!(
                "all files together have at most {} bytes",
                limits.unpacked_bytes_max
            ),
        };
        return Err(Problem::error(rule, "", message).into());
    }
    if let Err(problem) = outcome {
        reader.report.push(problem);
    }
    match reader.report.has_errors() {
        true => Err(reader.report),
        false => Ok(reader.files),
    }
}

struct Reader<'l> {
    files: Files,
    paths: PathSet,
    budget: Budget<'l>,
    report: Report,
    /// The name for the next entry, when it did not fit into the header.
    long_name: Option<Vec<u8>>,
}

impl Reader<'_> {
    fn entries(&mut self, stream: &mut impl Read, limits: &Limits) -> Result<(), Problem> {
        let damaged = |error: io::Error| {
            let message = format!("the tar archive cannot be read: {error}");
            Problem::error(Rule::NotAnArchive, "", message)
        };
        let mut archive = Archive::new(stream);
        // Raw: long names are read below, with a bound; the library would take any length.
        let entries = archive.entries().map_err(damaged)?.raw(true);
        for (index, entry) in entries.enumerate() {
            if index >= limits.entries_max {
                let message = format!("more than {} entries", limits.entries_max);
                return Err(Problem::error(Rule::EntryCount, "", message));
            }
            self.entry(entry.map_err(damaged)?)?;
        }
        // To the end of the stream: its checksum stands there.
        let mut rest = archive.into_inner();
        io::copy(&mut rest, &mut io::sink()).map_err(damaged)?;
        Ok(())
    }

    /// Takes one entry in. Problems with it are noted and the next is read; only what makes
    /// going on pointless or costly is returned.
    fn entry(&mut self, mut entry: Entry<'_, impl Read>) -> Result<(), Problem> {
        let kind = entry.header().entry_type();
        match kind {
            EntryType::XGlobalHeader => return Ok(()),
            EntryType::GNULongName => {
                let name = bounded_bytes(&mut entry)?;
                let end = name.iter().position(|byte| *byte == 0);
                self.long_name = Some(name[..end.unwrap_or(name.len())].to_vec());
                return Ok(());
            }
            EntryType::XHeader => {
                let bytes = bounded_bytes(&mut entry)?;
                let mut fields = PaxExtensions::new(&bytes).filter_map(Result::ok);
                let path = fields.find(|field| field.key_bytes() == b"path");
                self.long_name = path.map(|field| field.value_bytes().to_vec());
                return Ok(());
            }
            _ => {}
        }
        let name = self.long_name.take();
        let name = name.unwrap_or_else(|| entry.header().path_bytes().into_owned());
        let name = String::from_utf8_lossy(&name).into_owned();
        // `tar c .` writes every path with ./ before it.
        let path = name.strip_prefix("./").unwrap_or(&name);
        let is_folder = kind == EntryType::Directory;
        let path = match is_folder {
            true => path.strip_suffix('/').unwrap_or(path),
            false => path,
        };
        if is_folder && matches!(path, "" | ".") {
            return Ok(());
        }
        if let Err(problem) = check_path(path) {
            self.report.push(problem);
            return Ok(());
        }
        if is_folder {
            return Ok(());
        }
        if !matches!(kind, EntryType::Regular | EntryType::Continuous) {
            let message = "is a link or a special file";
            self.report
                .push(Problem::error(Rule::SpecialFile, shown(path), message));
            return Ok(());
        }
        self.paths.add(path, &mut self.report);
        let size = entry.header().entry_size().unwrap_or(u64::MAX);
        self.budget.spend(path, size)?;
        let bytes = read_sized(entry, path, size)?;
        self.files.insert(path.to_owned(), bytes);
        Ok(())
    }
}

fn bounded_bytes(entry: &mut impl Read) -> Result<Vec<u8>, Problem> {
    let mut bytes = vec![];
    let read = entry.take(LONG_NAME_BYTES_MAX + 1).read_to_end(&mut bytes);
    match read {
        Ok(_) if bytes.len() as u64 <= LONG_NAME_BYTES_MAX => Ok(bytes),
        _ => {
            let message = "a name in the tar archive is too long or damaged";
            Err(Problem::error(Rule::InvalidName, "", message))
        }
    }
}

/// Stops a stream that unpacks to too much, in all or for its packed size.
struct Bounded<'l, R> {
    stream: R,
    packed_bytes: u64,
    read_bytes: u64,
    read_bytes_max: u64,
    limits: &'l Limits,
    /// The rule it broke; tar turns the error into text, so it is kept here.
    broken: Option<Rule>,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        self.read_bytes += count as u64;
        if self.read_bytes > self.read_bytes_max {
            self.broken = Some(Rule::UnpackedSize);
        } else if is_bomb(self.packed_bytes, self.read_bytes, self.limits) {
            self.broken = Some(Rule::CompressionRatio);
        }
        match self.broken {
            Some(_) => Err(io::Error::other("over the limits")),
            None => Ok(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT_BYTES: u64 = 240 << 10;

    /// An endless tar of scripts, each within its own limit, that counts what is read of it.
    #[derive(Default)]
    struct Endless {
        read_bytes: u64,
        entries: u64,
        header: Vec<u8>,
        left_bytes: u64,
    }

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.header.is_empty() && self.left_bytes == 0 {
                self.entries += 1;
                let mut header = tar::Header::new_ustar();
                header.set_path(format!("scripts/Workspace/S{}.luau", self.entries))?;
                header.set_entry_type(EntryType::Regular);
                header.set_mode(0o644);
                header.set_size(SCRIPT_BYTES);
                header.set_cksum();
                self.header = header.as_bytes().to_vec();
                self.left_bytes = SCRIPT_BYTES;
            }
            let count = if self.header.is_empty() {
                let count = buffer.len().min(self.left_bytes as usize);
                buffer[..count].fill(b' ');
                self.left_bytes -= count as u64;
                count
            } else {
                let count = buffer.len().min(self.header.len());
                buffer[..count].copy_from_slice(&self.header[..count]);
                self.header.drain(..count);
                count
            };
            self.read_bytes += count as u64;
            Ok(count)
        }
    }

    #[test]
    fn scripts_over_their_total_are_refused_by_the_header_that_exceeds_it() {
        let limits = Limits::default();
        let mut endless = Endless::default();
        let report = read(&mut endless, 1 << 30, &limits).unwrap_err();
        assert!(report.broke(Rule::FileSize), "{report}");
        let max = limits.scripts_bytes_max as u64;
        assert_eq!(endless.entries, max / SCRIPT_BYTES + 1);
        let headers = 512 * endless.entries;
        assert!(
            endless.read_bytes <= max + headers,
            "{}",
            endless.read_bytes
        );
    }

    #[test]
    fn a_file_over_its_own_limit_is_refused_by_its_header() {
        for (path, bytes) in [
            ("scripts/Workspace/Big.luau", 257 << 10),
            ("spells/big/spell.luau", 257 << 10),
            ("scene.json", (64 << 20) + 1),
            ("game.toml", (64 << 10) + 1),
            ("README.md", 257 << 10),
            ("unknown.bin", 257 << 10),
            ("assets/a.png", 100_000_001),
        ] {
            let mut header = tar::Header::new_ustar();
            header.set_path(path).unwrap();
            header.set_entry_type(EntryType::Regular);
            header.set_size(bytes);
            header.set_cksum();
            // Only the header is there: reading content would fail otherwise than by size.
            let report = read(&header.as_bytes()[..], 1 << 30, &Limits::default()).unwrap_err();
            assert!(report.broke(Rule::FileSize), "{path}: {report}");
        }
    }
}
