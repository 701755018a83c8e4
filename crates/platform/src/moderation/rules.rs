//! The rules that reports and notices name.

use axum::Json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Platform;
use crate::api::{Rule, RuleList};
use crate::error::ApiError;

/// Id, title, what it asks, what to do after breaking it.
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
        "Do not share anybody's address, number, pictures or accounts, nor ask for them.",
        "Remove the information and do not ask for it again.",
    ),
    (
        "scam",
        "Scams and misleading",
        "Do not trick people out of accounts, money or things, and do not pretend to be somebody else.",
        "Give back what was taken where you can, and make names and descriptions say what is true.",
    ),
    (
        "cheating",
        "Cheating",
        "Do not use programs or faults to gain what others cannot.",
        "Stop using the program or fault, and tell the creator about it.",
    ),
    (
        "spam",
        "Spam",
        "Do not flood chat, listings or people with the same thing.",
        "Write it once. In the store, keep one game per idea.",
    ),
    (
        "copyright",
        "Somebody else's work",
        "Publish what is yours, or what its author lets you publish.",
        "Remove the work concerned, or show that its author allows it.",
    ),
    (
        "harmful_code",
        "Harmful scripts",
        "Scripts must not attack players' machines, other games or the platform.",
        "Remove the script, publish a version without it, and appeal so that we look at it.",
    ),
];

pub fn routes() -> OpenApiRouter<Platform> {
    OpenApiRouter::new().routes(routes!(list))
}

/// The rules of this platform
#[utoipa::path(get, path = "/api/rules", tag = "moderation", responses((status = 200, body = RuleList)))]
async fn list() -> Json<RuleList> {
    let rules = RULES.iter().map(|(id, ..)| rule(id)).collect();
    Json(RuleList { rules })
}

/// The rule of this name; one that is not known any more keeps its name.
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

/// Lets only rules pass that there are.
///
/// # Errors
/// 400 that says where they are listed.
pub fn known(id: &str) -> Result<(), ApiError> {
    if RULES.iter().any(|(known, ..)| *known == id) {
        Ok(())
    } else {
        Err(ApiError::bad_request(
            "unknown_rule",
            "there is no such rule; GET /api/rules lists them",
        ))
    }
}
