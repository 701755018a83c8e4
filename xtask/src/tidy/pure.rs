//! Forbidden dependencies of the pure crates (ARCHITECTURE.md, "The crates"):
//! clocks, files, sockets, threads, and in the simulation functions whose
//! results depend on the machine. Tests without waiting, and a browser that
//! predicts to the last bit, depend on it.

/// Crates that take time and bytes as inputs and give bytes back.
const PURE: [&str; 9] = [
    "scene",
    "motion",
    "sim",
    "terrain",
    "protocol",
    "fleet-api",
    "package",
    "world",
    "client",
];
/// Crates whose results are the same bits natively and in wasm.
const SAME_BITS: [&str; 3] = ["motion", "sim", "terrain"];

/// Names that mean the outside wherever they stand.
const NAMES: [(&str, &str); 3] = [
    ("Instant", "a clock"),
    ("SystemTime", "a clock"),
    ("tokio", "an async runtime"),
];
/// Modules of `std` that mean the outside.
const MODULES: [(&str, &str); 5] = [
    ("fs", "the file system"),
    ("net", "sockets"),
    ("thread", "threads"),
    ("process", "other programs"),
    ("env", "the environment"),
];
/// Methods of `f32` whose last bits depend on the C library; `libm` has them all.
const METHODS: [&str; 16] = [
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "exp", "exp2", "ln", "log", "log2",
    "log10", "powf", "cbrt", "hypot",
];

/// Complains about what a source file of a pure crate knows.
pub fn outside(name: &str, text: &str, found: &mut Vec<String>) {
    let Some(krate) = pure_crate(name) else {
        return;
    };
    for (index, line) in text.lines().enumerate() {
        // Comments are not code.
        let code = line.split("//").next().unwrap_or_default();
        let mut complain = |what: &str, why: &str| {
            let line = index + 1;
            found.push(format!(
                ":{line}: `{what}`: {krate} must not know {why} (ARCHITECTURE.md, \"The crates\")"
            ));
        };
        let words: Vec<&str> = words(code).collect();
        for (name, why) in NAMES {
            if words.contains(&name) {
                complain(name, why);
            }
        }
        for (module, why) in MODULES {
            let grouped = code.contains("std::{") && words.contains(&module);
            if grouped || names_module(code, module) {
                complain(&format!("std::{module}"), why);
            }
        }
        if SAME_BITS.contains(&krate) {
            for method in METHODS {
                if code.contains(&format!(".{method}(")) {
                    complain(
                        &format!(".{method}()"),
                        "functions of `std` that differ; take `libm`",
                    );
                }
            }
        }
    }
}

/// The crate, if the file is a source of a pure one.
fn pure_crate(name: &str) -> Option<&'static str> {
    let (krate, inside) = name.strip_prefix("crates/")?.split_once('/')?;
    let is_source = inside.starts_with("src/") && inside.ends_with(".rs");
    let mut pure = PURE.into_iter();
    pure.find(|known| is_source && *known == krate)
}

/// Whether `std::module` stands here, and not `std::module_of_another_name`.
fn names_module(code: &str, module: &str) -> bool {
    let mut rests = code.split("std::").skip(1);
    rests.any(|rest| words(rest).next() == Some(module) && rest.starts_with(module))
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(name: &str, text: &str) -> usize {
        let mut found = Vec::new();
        outside(name, text, &mut found);
        found.len()
    }

    #[test]
    fn what_a_pure_crate_must_not_know_is_found() {
        for line in [
            "use std::time::Instant;",
            "use std::time::{Duration, Instant};",
            "let now = std::time::SystemTime::now();",
            "use std::fs::File;",
            "    let text = std::fs::read(path);",
            "use std::{fs, io};",
            "use std::net::SocketAddr;",
            "std::thread::sleep(a);",
            "use tokio::sync::mpsc;",
        ] {
            for krate in PURE {
                let name = format!("crates/{krate}/src/a/b.rs");
                assert_eq!(count(&name, line), 1, "{name}: {line}");
            }
            assert_eq!(count("crates/gameserver/src/a.rs", line), 0, "{line}");
            assert_eq!(count("crates/world/tests/a.rs", line), 0, "{line}");
        }
        assert_eq!(count("crates/sim/src/a.rs", "let a = angle.sin();"), 1);
        assert_eq!(count("crates/world/src/a.rs", "let a = angle.sin();"), 0);
    }

    #[test]
    fn what_only_looks_like_it_passes() {
        for line in [
            "// Not std::fs: the caller has the bytes, an Instant too.",
            "use std::time::Duration;",
            "use std::io::Read;",
            "let instantly = environment.network;",
            "use std::{fmt, io};",
            "let (sin, cos) = yaw.sin_cos();",
            "let length = libm::hypotf(a, b);",
        ] {
            assert_eq!(count("crates/sim/src/a.rs", line), 0, "{line}");
        }
    }
}
