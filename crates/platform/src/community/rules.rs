//! The rules that reports and notices refer to.

use std::sync::Arc;

use axum::Json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::{Rule, RuleList};
use crate::community::Community;
use crate::core::error::ApiError;

/// Id, title, rule, advice after a violation.
const RULES: [(&str, &str, &str, &str); 10] = [
    (
        "harassment",
        "Harassment and bullying",
        "Do not threaten, insult or follow people who do not want it.",
        "Leave the people concerned alone. In games, remove what targets them.",
    ),
    (
        "hate",
        "Hate",
        "Do not attack people for who they are or where they come from.",
        "Remove the words, pictures or scripts concerned everywhere they appear.",
    ),
    (
        "sexual",
        "Sexual content",
        "Nothing sexual: children play here.",
        "Remove the content concerned and publish a version without it.",
    ),
    (
        "violence",
        "Cruel violence",
        "Play fights are fine; gore, cruelty and calls for real violence are not.",
        "Tone down what was reported and publish a version without it.",
    ),
    (
        "privacy",
        "Private information",
        "Do not share anyone's address, number, pictures or accounts, nor ask for them.",
        "Remove the information and do not ask for it again.",
    ),
    (
        "scam",
        "Scams and misleading",
        "Do not trick people out of accounts, money or things, and do not impersonate others.",
        "Give back what you can, and make names and descriptions accurate.",
    ),
    (
        "cheating",
        "Cheating",
        "Do not use programs or bugs to gain what others cannot.",
        "Stop using the program or bug, and report it to the creator.",
    ),
    (
        "spam",
        "Spam",
        "Do not flood chat, listings or people with the same content.",
        "Post it once. In the store, publish one game per idea.",
    ),
    (
        "copyright",
        "Copied work",
        "Publish only your own work, or work whose author allows it.",
        "Remove the work concerned, or show that its author allows it.",
    ),
    (
        "harmful_code",
        "Harmful scripts",
        "Scripts must not attack players' machines, other games or the platform.",
        "Remove the script, publish a version without it, and appeal so that moderators can check it.",
    ),
];

pub fn routes() -> OpenApiRouter<Arc<Community>> {
    OpenApiRouter::new().routes(routes!(list))
}

/// The rules of this platform
#[utoipa::path(get, path = "/api/rules", tag = "moderation", responses((status = 200, body = RuleList)))]
async fn list() -> Json<RuleList> {
    let rules = RULES.iter().map(|(id, ..)| rule(id)).collect();
    Json(RuleList { rules })
}

/// The rule with this id; an unknown id becomes the title.
pub fn rule(id: &str) -> Rule {
    let known = RULES.iter().find(|(known, ..)| *known == id);
    let (title, text, advice) = known.map_or((id, "", ""), |(_, title, text, advice)| {
        (*title, *text, *advice)
    });
    Rule {
        id: id.to_owned(),
        title: title.to_owned(),
        text: text.to_owned(),
        advice: advice.to_owned(),
    }
}

/// The title of a rule.
pub fn title(id: &str) -> String {
    rule(id).title
}

/// Rejects unknown rules.
///
/// # Errors
/// 400 with the URL of the rule list.
pub fn known(id: &str) -> Result<(), ApiError> {
    if RULES.iter().any(|(known, ..)| *known == id) {
        Ok(())
    } else {
        Err(ApiError::bad_request(
            "unknown_rule",
            "unknown rule; GET /api/rules lists all rules",
        ))
    }
}
