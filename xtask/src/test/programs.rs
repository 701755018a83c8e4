//! Programs of other people that the tests run against. They come from the
//! network, so they are fetched while the compiler has the processor.

use std::path::PathBuf;

use anyhow::Result;

use crate::progress::Progress;
use crate::tools::PYTHON_FOR_TESTS_MIN;
use crate::tools::python::{self, Package, Python};
use crate::workspace::Workspace;
use crate::{browser, postgres, web};

/// The imports of the example client in Python.
const WEBSOCKETS: Package = Package {
    requirement: "websockets==13.1",
    imports: "websockets.asyncio.client",
    alone: true,
    python_min: PYTHON_FOR_TESTS_MIN,
};
/// A stranger's client in another language than the site's.
const SOCKETIO: Package = Package {
    requirement: "python-socketio[client]==5.18.1",
    imports: "socketio, requests, websocket",
    alone: false,
    python_min: PYTHON_FOR_TESTS_MIN,
};
/// A server that speaks S3.
const S3: Package = Package {
    requirement: "moto[s3,server]==5.2.5",
    imports: "moto.s3, moto.server",
    alone: false,
    python_min: PYTHON_FOR_TESTS_MIN,
};
/// A client that tries everything in an OpenAPI document.
const SCHEMATHESIS: Package = Package {
    requirement: "schemathesis==4.32.5",
    imports: "schemathesis.cli",
    alone: false,
    python_min: PYTHON_FOR_TESTS_MIN,
};

/// The programs of each group of tests, or why one is missing: the other groups
/// run regardless.
pub struct Programs {
    /// For the control plane's tests.
    pub servers: Result<Servers>,
    /// The Python of the example client; the one in JavaScript has its packages.
    pub examples: Result<Python>,
    pub browser: Result<Browser>,
}

/// Postgres, an S3 server and schemathesis.
pub struct Servers {
    pub postgres: PathBuf,
    pub s3: Python,
    pub schemathesis: Python,
}

pub struct Browser {
    /// `None` is the one that Playwright brought.
    pub program: Option<PathBuf>,
    /// One test in forty wants it.
    pub socketio: Result<Python>,
}

/// Installs what is missing. One after the other: apt locks its database.
pub fn install(workspace: &Workspace, progress: &Progress) -> Programs {
    let package = |name: &str, package: &Package| {
        progress.step(name, |step| python::install(workspace, step, package))
    };
    let servers = || {
        Ok(Servers {
            postgres: progress.step("Postgres", postgres::ensure)?,
            s3: package("S3 server", &S3)?,
            schemathesis: package("schemathesis", &SCHEMATHESIS)?,
        })
    };
    let examples = || {
        progress.step("example packages", |step| {
            web::example_packages(workspace, step)?;
            python::install(workspace, step, &WEBSOCKETS)
        })
    };
    let browser = || {
        Ok(Browser {
            program: progress.step("browser", |step| browser::ensure(workspace, step))?,
            socketio: package("python-socketio", &SOCKETIO),
        })
    };
    Programs {
        servers: servers(),
        examples: examples(),
        browser: browser(),
    }
}
