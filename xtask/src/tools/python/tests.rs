//! Packages on a Python as Debian ships it, without venv and pip, and from an
//! index on this machine.
#![cfg(unix)]

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{self, Child, Stdio};

use super::*;
use crate::progress::Progress;

#[test]
fn a_requirement_names_a_folder() {
    assert_eq!(folder_name("websockets==13.1"), "websockets-13.1");
    assert_eq!(
        folder_name("moto[s3,server]==5.2.5"),
        "moto-s3-server--5.2.5"
    );
}

#[test]
fn a_plain_python_installs_a_package_that_is_all_of_itself() {
    let debian = Debian::new("plain");
    let python = debian
        .install(&package("plain==1.0", "plain", true))
        .unwrap();
    assert!(succeeds(python.command(), "import plain"));
    assert!(debian.folder().join(COMPLETE).is_file());
}

#[test]
fn a_plain_python_reports_what_is_missing_for_a_package_that_needs_others() {
    let debian = Debian::new("needs");
    for requirement in ["moto[s3,server]==5.2.5", "schemathesis==4.32.5"] {
        let failure = debian.install(&package(requirement, "moto", false));
        let said = failure.err().unwrap().to_string();
        assert!(said.contains("Python's venv is missing"), "{said}");
        assert!(!said.contains("network"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn a_wheel_that_needs_others_is_no_installation() {
    let debian = Debian::new("needy");
    let failure = debian.install(&package("needy==1.0", "needy", true));
    let said = failure.err().unwrap().to_string();
    assert!(said.contains("needs more than itself"), "{said}");
    assert!(!debian.folder().join(COMPLETE).exists());
}

#[test]
fn a_package_that_cannot_be_imported_is_no_installation() {
    let debian = Debian::new("broken");
    let failure = debian.install(&package("plain==1.0", "plain, no_such_module", true));
    let said = failure.err().unwrap().to_string();
    assert!(
        said.contains("`import plain, no_such_module` fails"),
        "{said}"
    );
    assert!(!debian.folder().join(COMPLETE).exists());
}

#[test]
fn an_old_python_is_not_taken() {
    let program = system((3, 8)).expect("the build needs Python");
    assert!(is_at_least(Command::new(program), (3, 0)));
    assert!(!is_at_least(Command::new(program), (99, 0)));
    assert_eq!(system((99, 0)), None);
}

fn package(requirement: &'static str, imports: &'static str, alone: bool) -> Package {
    Package {
        requirement,
        imports,
        alone,
        python_min: (3, 8),
    }
}

/// A Python that has neither venv nor pip, and an index for it.
struct Debian {
    root: PathBuf,
    index: Child,
}

impl Debian {
    fn new(name: &str) -> Self {
        let python = system((3, 8)).expect("the build needs Python");
        let root = env::temp_dir().join(format!("frolic-xtask-{}-{name}", process::id()));
        fs::create_dir_all(&root).unwrap();
        let mut index = Command::new(python)
            .args(["-c", include_str!("index.py")])
            .arg(root.join("index"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        let stdout = index.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut port).unwrap();
        let program = format!(
            "#!/bin/sh\n\
             case \"$2\" in *ensurepip*|\"import pip\") exit 1;; esac\n\
             export PIP_INDEX_URL=http://127.0.0.1:{} no_proxy=127.0.0.1\n\
             exec {python} \"$@\"\n",
            port.trim()
        );
        let debian = Self { root, index };
        // Written by another process: while this one has it open, a test beside
        // this may fork, and a program that is open for writing does not start.
        let mut write = Command::new("sh");
        write.args(["-c", "printf %s \"$1\" > \"$0\" && chmod +x \"$0\""]);
        write.arg(debian.program()).arg(program);
        assert!(write.status().unwrap().success());
        debian
    }

    fn install(&self, package: &Package) -> Result<Python> {
        let program = self.program();
        let program = program.to_str().unwrap();
        Progress::new().step("test", |step| {
            install_with(step, program, package, &self.folder())
        })
    }

    fn program(&self) -> PathBuf {
        self.root.join("python")
    }

    fn folder(&self) -> PathBuf {
        self.root.join("package")
    }
}

impl Drop for Debian {
    fn drop(&mut self) {
        let _ = self.index.kill();
        let _ = self.index.wait();
        let _ = fs::remove_dir_all(&self.root);
    }
}
