//! Every problem found in a package at once, for people and, as JSON, for programs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Limits;

/// Whether a problem stops the package from being used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The package is refused.
    Error,
    /// The package works, but probably not as its author thinks.
    Warning,
}

/// The rule that was broken. Its kebab-case name is stable: programs may match on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The bytes are not an archive of a known kind, or the archive contradicts itself.
    NotAnArchive,
    /// The archive uses something that packages must not use (encryption, splitting, …).
    UnsupportedArchive,
    /// The packed file is over the limit.
    PackedSize,
    /// All files together are over the limit.
    UnpackedSize,
    /// One file is over the limit.
    FileSize,
    /// A file unpacks to suspiciously many times its packed size.
    CompressionRatio,
    /// There are more entries than the limit.
    EntryCount,
    /// A size or checksum in the archive is not that of the data.
    LyingSize,
    /// Two parts of the archive give one entry different names.
    ConflictingName,
    /// Two entries share bytes of the archive, or bytes belong to no entry.
    OverlappingEntries,
    /// A path would leave the package.
    PathTraversal,
    /// A path starts at the root of a disk.
    AbsolutePath,
    /// A path is written with backslashes.
    Backslash,
    /// A path has a character or a length that not every system can store.
    InvalidName,
    /// A path uses a name that some system reserves for devices.
    ReservedName,
    /// Two entries have the same path.
    DuplicateName,
    /// Two paths differ only in upper and lower case.
    CaseCollision,
    /// A path is both a file and a folder.
    FileAndFolder,
    /// An entry is not a regular file (a symbolic link, a device, …).
    SpecialFile,
    /// A required file is missing.
    MissingFile,
    /// A file is where packages have none, or of a kind they do not hold.
    UnexpectedFile,
    /// An asset's content is not of the type that its name says.
    WrongMagic,
    /// A text file is not UTF-8, or holds control characters.
    InvalidText,
    /// TOML or JSON that cannot be parsed.
    Syntax,
    /// JSON nested deeper than the limit.
    JsonNesting,
    /// A key that means nothing here.
    UnknownKey,
    /// The same key twice.
    DuplicateKey,
    /// A required key is missing.
    MissingKey,
    /// A value of the wrong type, or outside its range.
    InvalidValue,
    /// A number that is not finite or is too big to simulate.
    NonFiniteNumber,
    /// More entities or prefabs than the limit.
    EntityCount,
    /// Two entities with one id.
    DuplicateId,
    /// A parent, prefab, script, asset or bundle member that does not exist.
    UnknownReference,
    /// Entities that are their own ancestors, or nested too deep.
    ParentCycle,
    /// A `.soul` without the Luau that was made of it, or with an older one.
    StaleScript,
    /// Allowed, but probably not meant.
    Suspicious,
    /// Allowed, and nothing reads it (yet).
    NoEffect,
    /// A script names something that does not exist where it runs.
    UnknownName,
    /// A script uses what game.toml does not declare.
    MissingCapability,
}

impl Rule {
    /// The stable kebab-case name.
    pub fn name(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => name,
            _ => format!("{self:?}"),
        }
    }
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// Whether the package is refused for it.
    pub severity: Severity,
    /// The rule that was broken.
    pub rule: Rule,
    /// The path inside the package; empty when the archive as a whole is meant.
    pub file: String,
    /// Line in that file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column in that line, in characters, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The part of the scene that the problem is about.
    #[serde(flatten)]
    pub subject: Subject,
    /// The error, and how to correct it.
    pub message: String,
}

/// The part of a scene that a problem is about; empty outside of scenes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Id of the entity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<u32>,
    /// Name of the prefab, when the problem is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefab: Option<String>,
    /// Name of the component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// Name of the field of the component, or of the entity where there is no component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

impl Problem {
    /// An error in a file (or, with an empty path, in the archive as a whole).
    pub fn error(rule: Rule, file: impl Into<String>, message: impl Into<String>) -> Self {
        Problem {
            severity: Severity::Error,
            rule,
            file: file.into(),
            line: None,
            column: None,
            subject: Subject::default(),
            message: message.into(),
        }
    }

    /// The same problem at a line and column.
    pub fn at(mut self, (line, column): (u32, u32)) -> Self {
        self.line = Some(line);
        self.column = Some(column);
        self
    }

    /// The same problem about a part of the scene.
    pub fn about(mut self, subject: Subject) -> Self {
        self.subject = subject;
        self
    }

    /// The same problem as a warning.
    pub fn as_warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = if self.file.is_empty() {
            "package"
        } else {
            &self.file
        };
        f.write_str(file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
            if let Some(column) = self.column {
                write!(f, ":{column}")?;
            }
        }
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, ": {severity}[{}]: ", self.rule.name())?;
        if let Some(id) = self.subject.entity {
            write!(f, "entity {id}: ")?;
        }
        if let Some(prefab) = &self.subject.prefab {
            write!(f, "prefab \"{prefab}\": ")?;
        }
        f.write_str(&self.message)
    }
}

/// All problems of a package, in the order of the files and lines they are in.
///
/// `Display` gives one line per problem; [`Report::to_json`] the same for programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The problems, at most [`Limits::problems_max`] of them.
    pub problems: Vec<Problem>,
    /// How many more there were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: usize,
    #[serde(skip)]
    problems_max: Option<usize>,
    #[serde(skip)]
    omitted_errors: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Report {
    /// An empty report that keeps as many problems as the limits say.
    pub fn new(limits: &Limits) -> Self {
        Report {
            problems_max: Some(limits.problems_max),
            ..Report::default()
        }
    }

    /// Adds a problem, or only counts it when the report is full.
    pub fn push(&mut self, problem: Problem) {
        let full = self
            .problems_max
            .is_some_and(|max| self.problems.len() >= max);
        if !full {
            self.problems.push(problem);
            return;
        }
        self.omitted += 1;
        let is_warning = |problem: &Problem| problem.severity == Severity::Warning;
        // Errors must not be hidden behind warnings.
        match self.problems.iter().rposition(is_warning) {
            Some(index) if !is_warning(&problem) => {
                self.problems.remove(index);
                self.problems.push(problem);
            }
            _ => self.omitted_errors += usize::from(!is_warning(&problem)),
        }
    }

    /// Adds all problems of another report.
    pub fn append(&mut self, other: Report) {
        self.omitted += other.omitted;
        self.omitted_errors += other.omitted_errors;
        for problem in other.problems {
            self.push(problem);
        }
    }

    /// Whether the package must be refused.
    pub fn has_errors(&self) -> bool {
        self.error_count() > 0
    }

    /// Number of errors, those that were only counted included.
    pub fn error_count(&self) -> usize {
        let listed = self.problems.iter();
        self.omitted_errors + listed.filter(|p| p.severity == Severity::Error).count()
    }

    /// Whether some problem broke this rule.
    pub fn broke(&self, rule: Rule) -> bool {
        self.problems.iter().any(|problem| problem.rule == rule)
    }

    /// `{"problems": [{severity, rule, file, line?, column?, entity?, prefab?, component?, field?,
    /// message}], "omitted"?: n}`
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({ "problems": self.problems, "omitted": self.omitted })
    }

    /// Puts the problems in the order of files and lines.
    pub fn sort(&mut self) {
        self.problems
            .sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
    }
}

impl From<Problem> for Report {
    fn from(problem: Problem) -> Self {
        Report {
            problems: vec![problem],
            ..Report::default()
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        if self.omitted > 0 {
            write!(f, "\n… and {} more", self.omitted)?;
        }
        Ok(())
    }
}

impl std::error::Error for Report {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_reads_like_a_compiler_message() {
        let problem = Problem::error(Rule::UnknownKey, "game.toml", "unknown key `nmae`");
        assert_eq!(
            problem.at((3, 1)).to_string(),
            "game.toml:3:1: error[unknown-key]: unknown key `nmae`"
        );
    }

    #[test]
    fn a_full_report_counts_the_rest_and_still_refuses() {
        let limits = Limits {
            problems_max: 1,
            ..Limits::default()
        };
        let mut report = Report::new(&limits);
        report.push(Problem::error(Rule::Suspicious, "a", "first").as_warning());
        assert!(!report.has_errors());
        report.push(Problem::error(Rule::Syntax, "b", "second"));
        assert!(report.has_errors());
        assert_eq!((report.problems.len(), report.omitted), (1, 1));
        assert!(report.to_string().ends_with("… and 1 more"));
        // Errors are listed before warnings are.
        assert_eq!(report.problems[0].message, "second");
        report.push(Problem::error(Rule::Syntax, "c", "third"));
        assert_eq!((report.error_count(), report.omitted), (2, 2));
    }
}
