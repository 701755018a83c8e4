//! From what a script uses to what is wrong with it.

use std::collections::BTreeSet;

use frolic_package::Manifest;
use frolic_protocol::script::RunContext;
use frolic_scene::{Problem, Rule};
use frolic_script::api::Side;
use frolic_script::{CompiledScript, Service};

use crate::known::{Global, Known, closest};
use crate::modules::Modules;
use crate::uses::{Place, Read, Required, Uses};

/// Members by which a script asks where it runs.
const ASKS_SIDE: [&str; 4] = ["IsServer", "IsClient", "IsStudio", "LocalPlayer"];

/// Everything that is certain to be wrong.
pub fn judge(
    file: &str,
    script: &CompiledScript,
    uses: &Uses,
    modules: &Modules,
    manifest: Option<&Manifest>,
) -> Vec<Problem> {
    let mut judge = Judge {
        file,
        side: match script.context {
            RunContext::Server => Side::Server,
            RunContext::Client => Side::Client,
            RunContext::Both => Side::Both,
        },
        runs_at_once: !script.is_module,
        service: script.service,
        uses,
        known: Known::get(),
        reported: BTreeSet::new(),
        found: Vec::new(),
    };
    for read in &uses.reads {
        judge.read(read);
    }
    judge.sides();
    if let Some(manifest) = manifest {
        judge.capabilities(manifest);
    }
    judge.modules(modules);
    judge.found
}

struct Judge<'a> {
    file: &'a str,
    side: Side,
    /// It runs when the world starts, not when it is required.
    runs_at_once: bool,
    service: Option<Service>,
    uses: &'a Uses,
    known: &'static Known,
    /// Warnings already given: once per name and script is enough.
    reported: BTreeSet<String>,
    found: Vec<Problem>,
}

impl Judge<'_> {
    fn read(&mut self, read: &Read) {
        let name = read.name.as_str();
        if self.uses.assigned.contains(name) || self.uses.guarded.contains(name) {
            return;
        }
        match self.known.global(name) {
            None => {
                let names = self.known.names(self.side);
                let own = self.uses.assigned.iter().map(String::as_str);
                let meant = closest(name, names.into_iter().chain(own));
                let message = format!("{name} is not defined{}", did_you_mean(meant));
                self.say(Rule::UnknownName, name, read.place, message);
            }
            Some(Global::Absent(advice)) => {
                if read.member.is_some() {
                    let message = format!("{name} does not exist here: {advice}");
                    self.say(Rule::UnknownName, name, read.place, message);
                }
            }
            Some(Global::On(side)) if !side.includes(self.side) => {
                let message = format!("{name} exists {}; {}", only(side), self.runs());
                self.say(Rule::UnknownName, name, read.place, message);
            }
            Some(Global::On(_)) => self.member(read),
        }
    }

    fn member(&mut self, read: &Read) {
        let (Some(member), Some(members)) = (&read.member, self.known.members(&read.name)) else {
            return;
        };
        let name = format!("{}.{member}", read.name);
        if self.uses.guarded.contains(&name) {
            return;
        }
        match members.get(member.as_str()) {
            Some(side) if side.includes(self.side) => {}
            Some(side) => {
                let message = format!("{name} exists {}; {}", only(*side), self.runs());
                self.say(Rule::UnknownName, &name, read.place, message);
            }
            None => {
                let meant = closest(member, members.keys().copied());
                let message = format!(
                    "{member} is not a member of {}{}",
                    read.name,
                    did_you_mean(meant)
                );
                self.say(Rule::UnknownName, &name, read.place, message);
            }
        }
    }

    /// A script that runs on both sides fails on one of them as soon as it
    /// starts.
    fn sides(&mut self) {
        let asks = |member: &&str| self.uses.members.contains(*member);
        if self.side != Side::Both || !self.runs_at_once || ASKS_SIDE.iter().any(asks) {
            return;
        }
        let certain = self.uses.reads.iter().filter(|read| read.certain);
        let one_sided = certain.filter_map(|read| {
            let name = &read.name;
            let own = self.uses.assigned.contains(name) || self.uses.guarded.contains(name);
            let Some(Global::On(side)) = self.known.global(name).filter(|_| !own) else {
                return None;
            };
            let member = read.member.as_deref();
            let of_member = self.known.members(name).zip(member);
            let of_member = of_member.and_then(|(all, member)| all.get(member).copied());
            let side = of_member.unwrap_or(side);
            let shown = match member {
                Some(member) => format!("{name}.{member}"),
                None => name.clone(),
            };
            (side != Side::Both).then_some((side, shown, read.place))
        });
        let first = one_sided.min_by_key(|(.., place)| *place);
        if let Some((side, shown, place)) = first {
            let context = match side {
                Side::Server => "server",
                _ => "client",
            };
            let message = format!(
                "{shown} exists {}, and this script runs on the server and on every client; \
                 begin it with the line --@context {context}",
                only(side)
            );
            self.say(Rule::UnknownName, "@context", place, message);
        }
    }

    fn capabilities(&mut self, manifest: &Manifest) {
        let declared: BTreeSet<&str> = manifest.capabilities.names().collect();
        for read in &self.uses.reads {
            let name = &read.name;
            if self.uses.assigned.contains(name) || read.member.is_none() {
                continue;
            }
            if let Some(capability) = self.known.capability(name)
                && !declared.contains(capability)
            {
                let message = format!(
                    "{name} needs a capability: write {capability} = true under [capabilities] in game.toml"
                );
                let key = format!("capability {capability}");
                self.say(Rule::MissingCapability, &key, read.place, message);
            }
        }
    }

    fn modules(&mut self, modules: &Modules) {
        for (required, place) in &self.uses.required {
            let (Required::Text(path) | Required::Item(path)) = required;
            if !modules.may_have(path) {
                let meant = did_you_mean(modules.closest(path));
                let message = format!("there is no module \"{path}\" in this game{meant}");
                self.say(Rule::UnknownReference, path, *place, message);
            }
        }
    }

    /// Where this script runs, and what would change that.
    fn runs(&self) -> String {
        let folder = self.service.map_or("its folder", Service::name);
        match self.side {
            Side::Server => format!("a script in {folder} runs on the server here"),
            _ => format!("a script in {folder} runs in players' browsers here"),
        }
    }

    fn say(&mut self, rule: Rule, key: &str, place: Place, message: String) {
        if self.reported.insert(key.to_owned()) {
            let problem = Problem::error(rule, self.file, message);
            self.found.push(problem.at(place).as_warning());
        }
    }
}

fn did_you_mean(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!("; did you mean {name}?"))
}

fn only(side: Side) -> &'static str {
    match side {
        Side::Server => "on the server only (ServerScriptService)",
        _ => "on clients only (StarterGui, StarterPlayer)",
    }
}
