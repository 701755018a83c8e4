//! Types of reports, moderators' decisions, and appeals.

use serde::{Deserialize, Serialize};

/// A rule of the platform.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Rule {
    /// For programs; stable.
    pub id: String,
    /// Short title.
    pub title: String,
    /// The rule for people.
    pub text: String,
    /// What a user who broke it should do.
    pub advice: String,
}

/// `GET /api/rules`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RuleList {
    /// All rules.
    pub rules: Vec<Rule>,
}

/// What can be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A game; the id is its slug.
    Game,
    /// A user.
    User,
    /// A spell.
    Spell,
    /// Chat messages; the id is the sender's user id.
    Chat,
}

/// A chat message, as the reporter's client showed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EvidenceLine {
    /// Name of the sender.
    #[schema(max_length = 64)]
    pub from: String,
    /// The message.
    #[schema(max_length = 400)]
    pub text: String,
}

/// Evidence of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Evidence {
    /// The world where it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64)]
    pub world_id: Option<String>,
    /// Chat messages, at most 20.
    #[serde(default)]
    #[schema(max_items = 20)]
    pub lines: Vec<EvidenceLine>,
}

/// `POST /api/reports`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NewReport {
    /// Kind of the reported target.
    pub target_kind: TargetKind,
    /// Its id.
    #[schema(min_length = 1, max_length = 128)]
    pub target_id: String,
    /// Id of the rule that it breaks.
    pub rule: String,
    /// Description of what happened.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub details: String,
    /// Evidence.
    #[serde(default)]
    pub evidence: Evidence,
}

/// State of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportStatus {
    /// Not decided yet.
    Open,
    /// Moderators took action.
    Acted,
    /// Moderators found no violation.
    Dismissed,
}

/// A report of yours.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OwnReport {
    /// Id.
    pub report_id: String,
    /// Kind of the reported target.
    pub target_kind: TargetKind,
    /// Its name at the time of the report.
    pub target_name: String,
    /// Title of the rule.
    pub rule: String,
    /// State.
    pub status: ReportStatus,
    /// RFC 3339.
    pub created_at: String,
}

/// `GET /api/reports`: your reports.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OwnReportList {
    /// This page, the newest first.
    pub reports: Vec<OwnReport>,
    /// Number of reports on all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Page size.
    pub per_page: u32,
}

/// A report as moderators see it.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Report {
    /// Id.
    pub report_id: String,
    /// Kind of the reported target.
    pub target_kind: TargetKind,
    /// Its id.
    pub target_id: String,
    /// Its name.
    pub target_name: String,
    /// User id of its owner.
    pub subject_id: String,
    /// Name of its owner.
    pub subject_name: String,
    /// The rule that it allegedly breaks.
    pub rule: Rule,
    /// The reporter's description.
    pub details: String,
    /// What the reporter's client showed; unverified.
    pub evidence: Evidence,
    /// The world's own recording, where worlds are recorded.
    #[schema(required)]
    pub recording: Option<ReportRecording>,
    /// User id of the reporter.
    pub reporter_id: String,
    /// Name of the reporter.
    pub reporter_name: String,
    /// State.
    pub status: ReportStatus,
    /// Number of open reports about the same target, including this one.
    pub open_on_target: u32,
    /// Number of earlier notices to the target's owner.
    pub notices_before: u32,
    /// RFC 3339.
    pub created_at: String,
}

/// The recording attached to a report: `GET /api/moderation/reports/{id}/recording`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ReportRecording {
    /// File name.
    pub file: String,
    /// Start of the recording, RFC 3339.
    pub started_at: String,
    /// Time of the report, in seconds from the start.
    pub reported_after_s: u32,
}

/// `GET /api/moderation/reports`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ReportList {
    /// This page: open reports oldest first, decided ones newest first.
    pub reports: Vec<Report>,
    /// Number of reports on all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Page size.
    pub per_page: u32,
}

/// Actions of moderators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No action: no rule was broken.
    Dismiss,
    /// Warn the user.
    Warn,
    /// Take down the game or spell.
    Takedown,
    /// Suspend the user from playing and publishing for a number of days.
    Suspend,
}

/// `POST /api/moderation/reports/{id}/decide`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Decision {
    /// The action.
    pub verdict: Verdict,
    /// The broken rule, if it is not the reported one.
    #[serde(default)]
    pub rule: Option<String>,
    /// Reason, shown to the affected user. Not required to dismiss.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub reason: String,
    /// What the user should do now; the rule's advice when empty.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub advice: String,
    /// Duration of a suspension in days.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 3650)]
    pub days: Option<u32>,
    /// Whether to decide all open reports about this target.
    #[serde(default)]
    pub all_on_target: bool,
}

/// Response of a decision.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Decided {
    /// The notice to the affected user; `null` when dismissed.
    #[schema(required)]
    pub notice_id: Option<String>,
    /// Number of reports decided by it.
    pub reports: u32,
}

/// Whether a notice is in effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeState {
    /// In effect.
    Active,
    /// A suspension that ended.
    Expired,
    /// Revoked by moderators.
    Lifted,
    /// Overturned on appeal.
    Overturned,
}

/// State of an appeal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AppealState {
    /// Not decided yet.
    Open,
    /// Granted: the notice was overturned.
    Granted,
    /// Rejected: the notice stays in effect.
    Refused,
}

/// An appeal against a notice.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Appeal {
    /// Id.
    pub appeal_id: String,
    /// The affected user's statement.
    pub text: String,
    /// State.
    pub state: AppealState,
    /// The moderators' answer.
    pub answer: String,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    #[schema(required)]
    pub decided_at: Option<String>,
}

/// A moderation decision as shown to the affected user: rule, evidence and advice.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Notice {
    /// Id.
    pub notice_id: String,
    /// The action; never `dismiss`.
    pub verdict: Verdict,
    /// Kind of the target.
    pub target_kind: TargetKind,
    /// Id of the target.
    pub target_id: String,
    /// Name of the target.
    pub target_name: String,
    /// The rule that was broken.
    pub rule: Rule,
    /// The moderators' reason.
    pub reason: String,
    /// Evidence.
    pub evidence: Evidence,
    /// What to do now.
    pub advice: String,
    /// Whether it is in effect.
    pub state: NoticeState,
    /// End of a suspension, RFC 3339.
    #[schema(required)]
    pub until: Option<String>,
    /// Whether the affected user has opened it.
    pub seen: bool,
    /// The appeal, if there is one.
    #[schema(required)]
    pub appeal: Option<Appeal>,
    /// RFC 3339.
    pub created_at: String,
}

/// `GET /api/notices`: your notices.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NoticeList {
    /// This page, the newest first.
    pub notices: Vec<Notice>,
    /// Number of notices on all pages.
    pub total: u32,
    /// Number of unopened notices.
    pub unseen: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Page size.
    pub per_page: u32,
}

/// `POST /api/notices/{id}/appeal`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NewAppeal {
    /// Why the decision is wrong.
    #[schema(min_length = 1, max_length = 2000)]
    pub text: String,
}

/// An appeal as moderators see it.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AppealCase {
    /// The notice, including the appeal.
    pub notice: Notice,
    /// User id of the appellant.
    pub subject_id: String,
    /// Name of the appellant.
    pub subject_name: String,
    /// User id of the moderator who decided; another one must decide the appeal.
    pub moderator_id: String,
    /// Name of that moderator.
    pub moderator_name: String,
}

/// `GET /api/moderation/appeals`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AppealList {
    /// This page: open appeals oldest first, decided ones newest first.
    pub appeals: Vec<AppealCase>,
    /// Number of appeals on all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Page size.
    pub per_page: u32,
}

/// `POST /api/moderation/appeals/{id}/decide`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AppealDecision {
    /// Whether the notice is overturned.
    pub grant: bool,
    /// Answer to the affected user.
    #[schema(min_length = 1, max_length = 2000)]
    pub answer: String,
}

/// `POST /api/moderation/notices/{id}/lift`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LiftNotice {
    /// Reason, for the log.
    #[schema(min_length = 1, max_length = 1000)]
    pub reason: String,
}

/// An entry of the moderation log.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AuditEntry {
    /// Id.
    pub entry_id: String,
    /// RFC 3339.
    pub at: String,
    /// Name of the user who acted.
    pub actor_name: String,
    /// The action: `report`, `recording` (a moderator downloaded it), `dismiss`,
    /// `warn`, `takedown`, `suspend`, `lift`, `appeal`, `grant` or `refuse`.
    pub action: String,
    /// Kind of the target.
    pub target_kind: TargetKind,
    /// Id of the target.
    pub target_id: String,
    /// Name of the target.
    pub target_name: String,
    /// Title of the rule.
    pub rule: String,
    /// Reason in words.
    pub summary: String,
}

/// `GET /api/moderation/log`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AuditLog {
    /// This page, the newest first.
    pub entries: Vec<AuditEntry>,
    /// Number of entries on all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Page size.
    pub per_page: u32,
}
