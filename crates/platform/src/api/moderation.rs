//! Reports, what moderators do about them, and appeals.

use serde::{Deserialize, Serialize};

/// A rule of the platform.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct Rule {
    /// For programs; stable.
    pub id: String,
    /// In a few words.
    pub title: String,
    /// What it asks of people.
    pub text: String,
    /// What somebody who broke it can do now.
    pub advice: String,
}

/// `GET /api/rules`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct RuleList {
    /// All of them.
    pub rules: Vec<Rule>,
}

/// What can be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A game, by its slug.
    Game,
    /// Somebody, by their id.
    User,
    /// A spell, by its id.
    Spell,
    /// What somebody said, by the id of who said it.
    Chat,
}

/// A line of chat, as the reporter's client showed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct EvidenceLine {
    /// Who said it.
    #[schema(max_length = 64)]
    pub from: String,
    /// What.
    #[schema(max_length = 400)]
    pub text: String,
}

/// What a report rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct Evidence {
    /// The world where it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64)]
    #[cfg_attr(test, ts(optional))]
    pub world_id: Option<String>,
    /// Lines of chat, at most 20.
    #[serde(default)]
    #[schema(max_items = 20)]
    pub lines: Vec<EvidenceLine>,
}

/// `POST /api/reports`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct NewReport {
    /// What is reported.
    pub target_kind: TargetKind,
    /// Which one.
    #[schema(min_length = 1, max_length = 128)]
    pub target_id: String,
    /// Id of the rule that it breaks.
    pub rule: String,
    /// What happened, in words.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub details: String,
    /// What it rests on.
    #[serde(default)]
    pub evidence: Evidence,
}

/// Where a report stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
#[serde(rename_all = "snake_case")]
pub enum ReportStatus {
    /// Nobody has looked at it yet.
    Open,
    /// Moderators did something.
    Acted,
    /// Moderators found nothing against the rules.
    Dismissed,
}

/// A report of yours.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct OwnReport {
    /// Id.
    pub report_id: String,
    /// What was reported.
    pub target_kind: TargetKind,
    /// Its name at that time.
    pub target_name: String,
    /// Title of the rule.
    pub rule: String,
    /// Where it stands.
    pub status: ReportStatus,
    /// RFC 3339.
    pub created_at: String,
}

/// `GET /api/reports`: what you have reported.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct OwnReportList {
    /// This page, the newest first.
    pub reports: Vec<OwnReport>,
    /// On all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// On a full page.
    pub per_page: u32,
}

/// A report as moderators see it.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct Report {
    /// Id.
    pub report_id: String,
    /// What is reported.
    pub target_kind: TargetKind,
    /// Which one.
    pub target_id: String,
    /// Its name.
    pub target_name: String,
    /// Whose it is.
    pub subject_id: String,
    /// Their name.
    pub subject_name: String,
    /// The rule that it is said to break.
    pub rule: Rule,
    /// What the reporter says.
    pub details: String,
    /// What the reporter's client showed; not proven.
    pub evidence: Evidence,
    /// What the world recorded of itself, where worlds are recorded.
    pub recording: Option<ReportRecording>,
    /// Who reported it.
    pub reporter_id: String,
    /// Their name.
    pub reporter_name: String,
    /// Where it stands.
    pub status: ReportStatus,
    /// Open reports about the same target, this one included.
    pub open_on_target: u32,
    /// Notices that the person concerned has had before.
    pub notices_before: u32,
    /// RFC 3339.
    pub created_at: String,
}

/// A recording that a report carries:
/// `GET /api/moderation/reports/{id}/recording`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct ReportRecording {
    /// Name of the file.
    pub file: String,
    /// When it was begun, RFC 3339.
    pub started_at: String,
    /// How far into it the report was made.
    pub reported_after_s: u32,
}

/// `GET /api/moderation/reports`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct ReportList {
    /// This page: open ones oldest first, decided ones newest first.
    pub reports: Vec<Report>,
    /// On all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// On a full page.
    pub per_page: u32,
}

/// What moderators can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing: no rule was broken.
    Dismiss,
    /// Tell the person concerned.
    Warn,
    /// Take a game out of the store.
    Takedown,
    /// Keep somebody from playing and publishing for some days.
    Suspend,
}

/// `POST /api/moderation/reports/{id}/decide`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct Decision {
    /// What to do.
    pub verdict: Verdict,
    /// The rule that was broken, when it is another than the reported one.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub rule: Option<String>,
    /// Why: the person concerned reads it. Not needed to dismiss.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub reason: String,
    /// What they should do now; the rule's own advice when empty.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub advice: String,
    /// Of a suspension: how long.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 3650)]
    #[cfg_attr(test, ts(optional))]
    pub days: Option<u32>,
    /// Decides all open reports about this target.
    #[serde(default)]
    pub all_on_target: bool,
}

/// Answer of a decision.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct Decided {
    /// The notice that the person concerned got; none when dismissed.
    pub notice_id: Option<String>,
    /// Reports that are decided by it.
    pub reports: u32,
}

/// Whether a notice still counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
#[serde(rename_all = "snake_case")]
pub enum NoticeState {
    /// It does.
    Active,
    /// A suspension whose time is over.
    Expired,
    /// Moderators took it back.
    Lifted,
    /// An appeal was granted.
    Overturned,
}

/// Where an appeal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
#[serde(rename_all = "snake_case")]
pub enum AppealState {
    /// Nobody has decided yet.
    Open,
    /// The notice was overturned.
    Granted,
    /// The notice stands.
    Refused,
}

/// An appeal against a notice.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct Appeal {
    /// Id.
    pub appeal_id: String,
    /// What the person concerned says.
    pub text: String,
    /// Where it stands.
    pub state: AppealState,
    /// What moderators answered.
    pub answer: String,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub decided_at: Option<String>,
}

/// What moderators did, as the person concerned reads it: which rule, which
/// evidence, what to do.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct Notice {
    /// Id.
    pub notice_id: String,
    /// What was done: never `dismiss`.
    pub verdict: Verdict,
    /// To what.
    pub target_kind: TargetKind,
    /// Which one.
    pub target_id: String,
    /// Its name.
    pub target_name: String,
    /// The rule that was broken.
    pub rule: Rule,
    /// Why moderators think so.
    pub reason: String,
    /// What it rests on.
    pub evidence: Evidence,
    /// What to do now.
    pub advice: String,
    /// Whether it still counts.
    pub state: NoticeState,
    /// When a suspension ends, RFC 3339.
    pub until: Option<String>,
    /// Whether the person concerned has opened it.
    pub seen: bool,
    /// The appeal, once there is one.
    pub appeal: Option<Appeal>,
    /// RFC 3339.
    pub created_at: String,
}

/// `GET /api/notices`: yours.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct NoticeList {
    /// This page, the newest first.
    pub notices: Vec<Notice>,
    /// On all pages.
    pub total: u32,
    /// Those that were not opened.
    pub unseen: u32,
    /// Page number, from 1.
    pub page: u32,
    /// On a full page.
    pub per_page: u32,
}

/// `POST /api/notices/{id}/appeal`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct NewAppeal {
    /// Why the decision is wrong.
    #[schema(min_length = 1, max_length = 2000)]
    pub text: String,
}

/// An appeal as moderators see it.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct AppealCase {
    /// What it is about, with the appeal in it.
    pub notice: Notice,
    /// Who appeals.
    pub subject_id: String,
    /// Their name.
    pub subject_name: String,
    /// Who decided, and should not decide again.
    pub moderator_id: String,
    /// Their name.
    pub moderator_name: String,
}

/// `GET /api/moderation/appeals`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct AppealList {
    /// This page: open ones oldest first, decided ones newest first.
    pub appeals: Vec<AppealCase>,
    /// On all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// On a full page.
    pub per_page: u32,
}

/// `POST /api/moderation/appeals/{id}/decide`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct AppealDecision {
    /// Whether the notice is overturned.
    pub grant: bool,
    /// What to tell the person concerned.
    #[schema(min_length = 1, max_length = 2000)]
    pub answer: String,
}

/// `POST /api/moderation/notices/{id}/lift`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct LiftNotice {
    /// Why, for the log.
    #[schema(min_length = 1, max_length = 1000)]
    pub reason: String,
}

/// One line of the log of what moderators did.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct AuditEntry {
    /// Id.
    pub entry_id: String,
    /// RFC 3339.
    pub at: String,
    /// Who.
    pub actor_name: String,
    /// What: `report`, `recording` (somebody fetched it), `dismiss`, `warn`,
    /// `takedown`, `suspend`, `lift`, `appeal`, `grant` or `refuse`.
    pub action: String,
    /// To what.
    pub target_kind: TargetKind,
    /// Which one.
    pub target_id: String,
    /// Its name.
    pub target_name: String,
    /// Title of the rule.
    pub rule: String,
    /// Why, in words.
    pub summary: String,
}

/// `GET /api/moderation/log`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct AuditLog {
    /// This page, the newest first.
    pub entries: Vec<AuditEntry>,
    /// On all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// On a full page.
    pub per_page: u32,
}
