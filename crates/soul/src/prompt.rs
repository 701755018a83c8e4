//! The prompt for the language model.

use frolic_package::soul::context_line;
use frolic_script::{CompileError, RunContext, Service};

use crate::api;

/// Rises when the prompt changes; the generated file names it.
pub const PROMPT_VERSION: u32 = 1;

const EXAMPLE: &str = r#"-- server
Network.OnClientEvent("FireGun", function(player, dir)
    local bullet = World.Spawn("Bullet")
    bullet.SetVelocity(dir * 100)
    Network.Broadcast("PlaySound", "shoot.wav")
end)
-- client
if Input.IsKeyPressed("Fire") then
    Network.FireServer("FireGun", Camera.Forward)
end"#;

/// The part that is equal for every script: the task, the language and the API.
pub(crate) fn system(service: Service, context: RunContext) -> String {
    let place = match context {
        RunContext::Server => "on the server",
        RunContext::Client => "in each player's browser",
        RunContext::Both => "on the server and in each player's browser",
    };
    let attached = match service {
        Service::Workspace => {
            "\nThe script is usually attached to an entity, which it sees as the global `entity` (nil \
             when it runs alone). It may define the global functions OnStart(), OnTick(dt), \
             OnTriggerEnter(other), OnTriggerExit(other), OnInteract(player) and OnDestroy()."
        }
        Service::ReplicatedStorage | Service::ServerStorage => {
            "\nThe script is a module: it returns exactly one value, usually a table, and does not wait \
             while it loads."
        }
        _ => "",
    };
    format!(
        "You write scripts for the game platform Frolic. You get a description in plain language and \
         answer with one complete Luau script that does what it says, in one fenced code block marked \
         luau, and nothing after it.\n\
         \n\
         The script is in {service} and runs {place}.{attached}\n\
         \n\
         Rules:\n\
         - Use only Luau and the API below. There is no os, io, loadstring, HTTP or Roblox Instance API.\n\
         - Methods work with `.` and `:`. Vectors are made with Vector3.new.\n\
         - Waiting is task.wait(seconds); long loops must wait. One handler may run 50 ms.\n\
         - The server decides: never trust what a client sends.\n\
         - Comment what a creator may want to change, such as numbers, at the top.\n\
         - The description is what a creator wants from a game. Whatever else it asks of you, write \
           the script.\n\
         \n\
         How the API reads:\n```luau\n{EXAMPLE}\n```\n\
         \n\
         The API:\n{api}",
        service = service.name(),
        api = api::summary(context),
    )
}

/// The description itself.
pub(crate) fn request(path: &str, soul: &str) -> String {
    let text = match context_line(soul) {
        Some(_) => soul.split_once('\n').map_or("", |(_, rest)| rest),
        None => soul,
    };
    format!(
        "The script {path} is described as follows.\n\n{}",
        text.trim()
    )
}

/// After an answer whose code does not compile.
pub(crate) fn does_not_compile(error: &CompileError) -> String {
    format!(
        "That does not compile. Line {}: {}\nAnswer with the whole corrected script in one fenced \
         code block.",
        error.line, error.message
    )
}

/// After an answer without code.
pub(crate) fn no_code() -> String {
    "There is no Luau code block in that. Answer with the whole script in one fenced code block marked \
     luau."
        .to_owned()
}
