//! Reads a zip that is exactly what it seems; see the module above for what is refused.

use crate::archive::{Budget, Files, is_bomb, read_sized};
use crate::names::{PathSet, check_path};
use crate::{Limits, Problem, Report, Rule};
use frolic_scene::text::shown;

mod extra;

use self::extra::Header;
use super::{
    CENTRAL_BYTES, CENTRAL_SIGNATURE, DESCRIPTOR_SIGNATURE, END_BYTES, END_SIGNATURE,
    FLAG_DESCRIPTOR, FLAGS_REFUSED, LOCAL_BYTES, LOCAL_SIGNATURE, METHOD_DEFLATE, METHOD_STORED,
    METHOD_ZSTD,
};

/// Reads all files. Nothing is decompressed before [`inspect`] has found nothing wrong.
pub(crate) fn read(archive: &[u8], limits: &Limits) -> Result<Files, Report> {
    let mut report = Report::new(limits);
    let mut files = Files::new();
    let (entries, directory_at) = inspect(archive, limits)?;
    for entry in entries.iter().filter(|entry| !entry.is_folder()) {
        match entry.unpack(archive, directory_at) {
            Ok(bytes) => drop(files.insert(entry.path.clone(), bytes)),
            Err(problem) => report.push(problem),
        }
    }
    match report.has_errors() {
        true => Err(report),
        false => Ok(files),
    }
}

/// Reads one file.
pub(crate) fn read_one(archive: &[u8], path: &str, limits: &Limits) -> Result<Vec<u8>, Report> {
    let (entries, directory_at) = inspect(archive, limits)?;
    let entry = entries.iter().find(|entry| entry.path == path);
    let entry = entry.ok_or_else(|| Problem::error(Rule::MissingFile, path, "is missing"))?;
    Ok(entry.unpack(archive, directory_at)?)
}

/// Whether an archive would pass all rules that do not need its data.
pub(crate) fn check(archive: &[u8], limits: &Limits) -> Result<(), Report> {
    inspect(archive, limits).map(|_| ())
}

/// Reads the headers of all entries and reports their problems together.
fn inspect<'a>(archive: &'a [u8], limits: &Limits) -> Result<(Vec<Entry<'a>>, usize), Report> {
    let (entries, directory_at) = central_directory(archive, limits)?;
    let mut report = Report::new(limits);
    let mut paths = PathSet::default();
    let mut budget = Budget::new(limits);
    let mut spans = Vec::with_capacity(entries.len());
    for entry in &entries {
        match entry.locate(archive, directory_at) {
            Ok(span) => spans.push((span, entry)),
            Err(problem) => report.push(problem),
        }
        if let Err(problem) = entry.check(limits) {
            report.push(problem);
        } else if !entry.is_folder() {
            paths.add(&entry.path, &mut report);
        }
        if let Err(problem) = budget.spend(&shown(&entry.path), entry.unpacked_bytes) {
            report.push(problem);
        }
    }
    if !report.has_errors() {
        check_layout(archive, spans, directory_at)?;
    }
    match report.has_errors() {
        true => Err(report),
        false => Ok((entries, directory_at)),
    }
}

/// One entry of the central directory.
struct Entry<'a> {
    path: String,
    flags: u16,
    method: u16,
    crc: u32,
    packed_bytes: u64,
    unpacked_bytes: u64,
    unix_mode: u32,
    header_at: usize,
    extra: &'a [u8],
}

/// Which bytes of the archive an entry takes.
struct Span<'a> {
    start: usize,
    data: usize,
    end: usize,
    has_descriptor: bool,
    /// The extra field of the local header.
    extra: &'a [u8],
}

fn central_directory<'a>(
    archive: &'a [u8],
    limits: &Limits,
) -> Result<(Vec<Entry<'a>>, usize), Report> {
    let broken = |message: &str| Report::from(Problem::error(Rule::NotAnArchive, "", message));
    let end_at = archive.len().checked_sub(END_BYTES);
    let end_at = end_at.ok_or_else(|| broken("too short to be a zip archive"))?;
    let end = Fields(&archive[end_at..]);
    if end.u32(0) != Some(END_SIGNATURE) || end.u16(20) != Some(0) {
        return Err(broken(
            "the zip archive is cut off, or a comment or other data follows its end",
        ));
    }
    let (count, size, at) = match (end.u16(10), end.u32(12), end.u32(16)) {
        (Some(count), Some(size), Some(at)) => (count, size as usize, at as usize),
        _ => return Err(broken("the zip archive is cut off")),
    };
    if end.u32(4) != Some(0) || end.u16(8) != Some(count) {
        let message = "is one part of a split zip archive";
        return Err(Problem::error(Rule::UnsupportedArchive, "", message).into());
    }
    if at.checked_add(size) != Some(end_at) {
        return Err(broken(
            "the zip directory is not right before its end record (or is in zip64 format)",
        ));
    }
    if usize::from(count) > limits.entries_max {
        let message = format!(
            "{count} entries; at most {} are allowed",
            limits.entries_max
        );
        return Err(Problem::error(Rule::EntryCount, "", message).into());
    }
    let mut entries = vec![];
    let mut rest = &archive[at..end_at];
    while !rest.is_empty() {
        let (entry, after) =
            Entry::parse(rest).ok_or_else(|| broken("the zip directory is damaged"))?;
        entries.push(entry);
        rest = after;
        if entries.len() > usize::from(count) {
            break;
        }
    }
    if entries.len() != usize::from(count) {
        return Err(broken(
            "the zip directory does not hold as many entries as it says",
        ));
    }
    Ok((entries, at))
}

impl<'a> Entry<'a> {
    fn parse(bytes: &'a [u8]) -> Option<(Entry<'a>, &'a [u8])> {
        let fields = Fields(bytes);
        if fields.u32(0)? != CENTRAL_SIGNATURE {
            return None;
        }
        let name_bytes = usize::from(fields.u16(28)?);
        let extra_bytes = usize::from(fields.u16(30)?);
        let comment_bytes = usize::from(fields.u16(32)?);
        let extra_at = CENTRAL_BYTES + name_bytes;
        let name = bytes.get(CENTRAL_BYTES..extra_at)?;
        let entry = Entry {
            path: String::from_utf8_lossy(name).into_owned(),
            flags: fields.u16(8)?,
            method: fields.u16(10)?,
            crc: fields.u32(16)?,
            packed_bytes: u64::from(fields.u32(20)?),
            unpacked_bytes: u64::from(fields.u32(24)?),
            unix_mode: fields.u32(38)? >> 16,
            header_at: fields.u32(42)? as usize,
            extra: bytes.get(extra_at..extra_at + extra_bytes)?,
        };
        let rest = bytes.get(extra_at + extra_bytes + comment_bytes..)?;
        Some((entry, rest))
    }

    fn is_folder(&self) -> bool {
        self.path.ends_with('/')
    }

    /// The rules that need only the header.
    fn check(&self, limits: &Limits) -> Result<(), Problem> {
        check_path(self.path.strip_suffix('/').unwrap_or(&self.path))?;
        extra::check(self, Header::Central, self.extra)?;
        let refuse = |rule, message: &str| Err(Problem::error(rule, &*self.path, message));
        const TYPE_MASK: u32 = 0o170_000;
        let expected = match self.is_folder() {
            true => 0o040_000,
            false => 0o100_000,
        };
        let kind = self.unix_mode & TYPE_MASK;
        if kind != 0 && kind != expected {
            return refuse(Rule::SpecialFile, "is a link or a special file");
        }
        if self.flags & FLAGS_REFUSED != 0 {
            return refuse(Rule::UnsupportedArchive, "is encrypted or patched data");
        }
        if !matches!(self.method, METHOD_STORED | METHOD_DEFLATE | METHOD_ZSTD) {
            let message = "is compressed in a way other than deflate or zstd";
            return refuse(Rule::UnsupportedArchive, message);
        }
        if self.is_folder() && (self.unpacked_bytes > 0 || self.packed_bytes > 0) {
            return refuse(Rule::LyingSize, "is a folder with data");
        }
        if self.method == METHOD_STORED && self.packed_bytes != self.unpacked_bytes {
            return refuse(Rule::LyingSize, "is stored, yet has two sizes");
        }
        if is_bomb(self.packed_bytes, self.unpacked_bytes, limits) {
            let message = format!(
                "unpacks to more than {} times its packed size",
                limits.ratio_max
            );
            return refuse(Rule::CompressionRatio, &message);
        }
        Ok(())
    }

    /// Finds the data behind the local header, which must agree with the central one.
    fn locate<'b>(&self, archive: &'b [u8], directory_at: usize) -> Result<Span<'b>, Problem> {
        let damaged = || {
            let message = "its local header is damaged or differs from the directory";
            Problem::error(Rule::LyingSize, shown(&self.path), message)
        };
        let before_directory = archive.get(..directory_at).ok_or_else(damaged)?;
        let bytes = before_directory.get(self.header_at..).ok_or_else(damaged)?;
        let span = self.agreeing_span(bytes).ok_or_else(damaged)?;
        if span.end > directory_at {
            return Err(damaged());
        }
        extra::check(self, Header::Local, span.extra)?;
        Ok(span)
    }

    fn agreeing_span<'b>(&self, bytes: &'b [u8]) -> Option<Span<'b>> {
        let fields = Fields(bytes);
        let name_bytes = usize::from(fields.u16(26)?);
        let extra_bytes = usize::from(fields.u16(28)?);
        let name = bytes.get(LOCAL_BYTES..LOCAL_BYTES + name_bytes)?;
        let has_descriptor = self.flags & FLAG_DESCRIPTOR != 0;
        let same_kind = fields.u32(0)? == LOCAL_SIGNATURE
            && fields.u16(6)? == self.flags
            && fields.u16(8)? == self.method
            && String::from_utf8_lossy(name) == self.path;
        let same_sizes = has_descriptor
            || (fields.u32(14)? == self.crc
                && u64::from(fields.u32(18)?) == self.packed_bytes
                && u64::from(fields.u32(22)?) == self.unpacked_bytes);
        let extra_at = LOCAL_BYTES + name_bytes;
        let data = self.header_at + extra_at + extra_bytes;
        let end = data.checked_add(usize::try_from(self.packed_bytes).ok()?)?;
        (same_kind && same_sizes).then_some(Span {
            start: self.header_at,
            data,
            end,
            has_descriptor,
            extra: bytes.get(extra_at..extra_at + extra_bytes)?,
        })
    }

    /// The sizes and checksum behind the data must be those of the directory: optional signature,
    /// checksum, and both sizes with 32 or 64 bits. No problem when the gap is no descriptor.
    fn check_descriptor(&self, gap: &[u8]) -> Result<(), Option<Problem>> {
        let fields = match gap.len() {
            12 | 20 => Fields(gap),
            16 | 24 if Fields(gap).u32(0) == Some(DESCRIPTOR_SIGNATURE) => Fields(&gap[4..]),
            _ => return Err(None),
        };
        let (packed, unpacked) = match fields.0.len() {
            12 => (fields.u32(4).map(u64::from), fields.u32(8).map(u64::from)),
            _ => (fields.u64(4), fields.u64(12)),
        };
        let agrees = fields.u32(0) == Some(self.crc)
            && packed == Some(self.packed_bytes)
            && unpacked == Some(self.unpacked_bytes);
        if agrees {
            return Ok(());
        }
        let message = "the sizes behind its data differ from those of the directory";
        Err(Some(Problem::error(
            Rule::LyingSize,
            shown(&self.path),
            message,
        )))
    }

    fn unpack(&self, archive: &[u8], directory_at: usize) -> Result<Vec<u8>, Problem> {
        let span = self.locate(archive, directory_at)?;
        let packed = &archive[span.data..span.end];
        let (path, size) = (&self.path, self.unpacked_bytes);
        let bytes = match self.method {
            METHOD_DEFLATE => read_sized(flate2::read::DeflateDecoder::new(packed), path, size),
            METHOD_ZSTD => match ruzstd::decoding::StreamingDecoder::new(packed) {
                Ok(decoder) => read_sized(decoder, path, size),
                Err(error) => {
                    let message = format!("cannot be decompressed: {error}");
                    Err(Problem::error(Rule::NotAnArchive, path, message))
                }
            },
            _ => read_sized(packed, path, size),
        }?;
        if crc32fast::hash(&bytes) != self.crc {
            let message = "its checksum is wrong: the file is damaged";
            return Err(Problem::error(Rule::LyingSize, path, message));
        }
        Ok(bytes)
    }
}

/// Entries must follow each other from the first byte to the directory; the only thing allowed
/// between them is the descriptor that a streaming zip tool puts after the data.
fn check_layout(
    archive: &[u8],
    mut spans: Vec<(Span<'_>, &Entry<'_>)>,
    directory_at: usize,
) -> Result<(), Report> {
    let overlap = || {
        let message = "entries of the zip archive overlap, or bytes between them belong to none";
        Report::from(Problem::error(Rule::OverlappingEntries, "", message))
    };
    spans.sort_by_key(|(span, _)| (span.start, span.end));
    if spans.first().is_none_or(|(first, _)| first.start != 0) {
        return Err(overlap());
    }
    let starts = spans.iter().skip(1).map(|(span, _)| span.start);
    let ends = starts.chain([directory_at]);
    for ((span, entry), next) in spans.iter().zip(ends) {
        let gap = archive.get(span.end..next).ok_or_else(overlap)?;
        match span.has_descriptor {
            true => entry
                .check_descriptor(gap)
                .map_err(|problem| match problem {
                    Some(problem) => problem.into(),
                    None => overlap(),
                })?,
            false if gap.is_empty() => {}
            false => return Err(overlap()),
        }
    }
    Ok(())
}

/// Little-endian numbers at offsets, or nothing past the end.
struct Fields<'b>(&'b [u8]);

impl Fields<'_> {
    fn u16(&self, at: usize) -> Option<u16> {
        let bytes = self.0.get(at..at + 2)?;
        Some(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&self, at: usize) -> Option<u32> {
        let bytes = self.0.get(at..at + 4)?;
        Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn u64(&self, at: usize) -> Option<u64> {
        let (low, high) = (self.u32(at)?, self.u32(at + 4)?);
        Some(u64::from(low) | u64::from(high) << 32)
    }
}
