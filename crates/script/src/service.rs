//! Services: the folder of a script decides where it may run.

use frolic_protocol::script::RunContext;

/// The folders of a package that hold scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    /// Clients, before everything else.
    ReplicatedFirst,
    /// Modules for both sides, loaded with `require`.
    ReplicatedStorage,
    /// Both sides, usually attached to an entity.
    Workspace,
    /// Clients: user interface.
    StarterGui,
    /// Clients: player controls and camera.
    StarterPlayer,
    /// The server only; never sent.
    ServerScriptService,
    /// Modules for the server only; never sent.
    ServerStorage,
    /// Spells, on both sides; they run when they are cast.
    Spells,
}

impl Service {
    /// All services, in the order clients should run them.
    pub const ALL: [Service; 8] = [
        Service::ReplicatedFirst,
        Service::ReplicatedStorage,
        Service::Workspace,
        Service::StarterGui,
        Service::StarterPlayer,
        Service::ServerScriptService,
        Service::ServerStorage,
        Service::Spells,
    ];

    /// The folder's name.
    pub fn name(self) -> &'static str {
        match self {
            Service::ReplicatedFirst => "ReplicatedFirst",
            Service::ReplicatedStorage => "ReplicatedStorage",
            Service::Workspace => "Workspace",
            Service::StarterGui => "StarterGui",
            Service::StarterPlayer => "StarterPlayer",
            Service::ServerScriptService => "ServerScriptService",
            Service::ServerStorage => "ServerStorage",
            Service::Spells => "spells",
        }
    }

    /// The service of a path like `Workspace/KillBrick.luau`.
    pub fn of_path(path: &str) -> Option<Service> {
        let folder = path.split('/').next()?;
        Service::ALL.into_iter().find(|s| s.name() == folder)
    }

    /// The widest context a script of this service may have.
    pub fn context(self) -> RunContext {
        match self {
            Service::ServerScriptService | Service::ServerStorage => RunContext::Server,
            Service::ReplicatedStorage | Service::Workspace | Service::Spells => RunContext::Both,
            Service::StarterGui | Service::StarterPlayer | Service::ReplicatedFirst => {
                RunContext::Client
            }
        }
    }

    /// Whether all scripts here run on demand, not when the world starts.
    /// Elsewhere a file that returns a value does.
    pub fn holds_modules(self) -> bool {
        matches!(
            self,
            Service::ReplicatedStorage | Service::ServerStorage | Service::Spells
        )
    }
}

/// The directive in the first line: `--@context server|client|both`.
pub(crate) fn context_directive(source: &str) -> Option<Result<RunContext, String>> {
    let first = source.lines().next()?.trim_start_matches('\u{feff}');
    let word = first.trim().strip_prefix("--@context")?.trim();
    Some(match word {
        "server" => Ok(RunContext::Server),
        "client" => Ok(RunContext::Client),
        "both" => Ok(RunContext::Both),
        other => Err(format!(
            "unknown context \"{other}\": write `--@context server`, `client` or `both`"
        )),
    })
}

/// The context in a file's name, as in Rojo: `Main.server.luau` is a server
/// script, `Hud.client.luau` a client script.
pub(crate) fn context_of_name(path: &str) -> Option<RunContext> {
    let stem = path
        .strip_suffix(".luau")
        .or_else(|| path.strip_suffix(".lua"))?;
    match stem.rsplit_once('.')?.1 {
        "server" => Some(RunContext::Server),
        "client" => Some(RunContext::Client),
        _ => None,
    }
}

/// Narrows a service's context by a directive.
pub(crate) fn narrow(service: Service, wanted: RunContext) -> Result<RunContext, String> {
    let allowed = service.context();
    if wanted == allowed || allowed == RunContext::Both {
        return Ok(wanted);
    }
    Err(format!(
        "a script in {} runs on the {} only; move it to another service to widen that",
        service.name(),
        match allowed {
            RunContext::Server => "server",
            _ => "client",
        }
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directive_narrows_but_never_widens() {
        assert_eq!(
            narrow(Service::Workspace, RunContext::Server),
            Ok(RunContext::Server)
        );
        assert!(narrow(Service::ServerScriptService, RunContext::Both).is_err());
        assert!(narrow(Service::StarterGui, RunContext::Server).is_err());
    }

    #[test]
    fn the_directive_stands_on_the_first_line_only() {
        assert_eq!(
            context_directive("--@context client\nprint(1)"),
            Some(Ok(RunContext::Client))
        );
        assert_eq!(context_directive("print(1)\n--@context client"), None);
        assert!(matches!(context_directive("--@context moon"), Some(Err(_))));
    }

    #[test]
    fn paths_outside_a_service_have_none() {
        assert_eq!(
            Service::of_path("Workspace/A/B.luau"),
            Some(Service::Workspace)
        );
        assert_eq!(Service::of_path("Other/B.luau"), None);
    }
}
