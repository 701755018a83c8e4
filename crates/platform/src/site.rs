//! The site: files that the binary carries, compressed once, and `index.html`
//! for every page address that the single-page application draws itself.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::Platform;
use crate::error::ApiError;
use crate::ids;

/// First segments that belong to programs: a miss there is an error in JSON,
/// not a page.
const API_ROOTS: [&str; 4] = ["api", "internal", "cdn", "socket.io"];
/// Shown when the binary was built without the site.
const NO_SITE: &str = "<!doctype html><meta charset=\"utf-8\"><title>Frolic</title>\
    <h1>Frolic runs, but without its site</h1><p>This binary was built before the web pages were. \
    Run <code>cargo xtask serve</code>, which builds both.</p>";
/// Below this, headers outweigh what compression saves.
const GZIP_BYTES_MIN: usize = 1024;

/// Where the site's files come from: given by the binary, which embeds them.
pub trait SiteFiles: Send + Sync + 'static {
    /// The file at `path`, without a leading slash.
    fn file(&self, path: &str) -> Option<Cow<'static, [u8]>>;
}

impl<F> SiteFiles for F
where
    F: Fn(&str) -> Option<Cow<'static, [u8]>> + Send + Sync + 'static,
{
    fn file(&self, path: &str) -> Option<Cow<'static, [u8]>> {
        self(path)
    }
}

/// The site and what was prepared of it.
pub struct Site {
    files: Box<dyn SiteFiles>,
    /// Grows to the number of files in the binary and no further: misses are
    /// not kept.
    prepared: Mutex<HashMap<String, Arc<Prepared>>>,
}

struct Prepared {
    plain: Bytes,
    gzip: Option<Bytes>,
    etag: HeaderValue,
    content_type: &'static str,
    cache: &'static str,
}

impl Site {
    /// Serves `files`.
    pub fn new(files: Box<dyn SiteFiles>) -> Self {
        Self {
            files,
            prepared: Mutex::default(),
        }
    }

    fn file(&self, path: &str) -> Option<Arc<Prepared>> {
        if let Some(prepared) = self.prepared().get(path) {
            return Some(prepared.clone());
        }
        let bytes = match self.files.file(path)? {
            Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            Cow::Owned(bytes) => Bytes::from(bytes),
        };
        let prepared = Arc::new(prepare(path, bytes));
        self.prepared().insert(path.to_owned(), prepared.clone());
        Some(prepared)
    }

    fn prepared(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Prepared>>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The fallback of the router: every address that no endpoint took.
pub async fn serve(State(platform): State<Platform>, request: Request) -> Response {
    let path = request.uri().path().trim_start_matches('/');
    let root = path.split('/').next().unwrap_or_default();
    if API_ROOTS.contains(&root) {
        return ApiError::not_found("not_found", "there is no such address").into_response();
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return ApiError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "this address does not take this method",
        )
        .into_response();
    }
    let site = platform.site();
    if let Some(file) = site.file(path).filter(|_| !path.is_empty()) {
        return respond(&file, request.headers());
    }
    // A missing script must not answer with a page: the browser would report
    // a syntax error instead of a missing file.
    if root == "assets" {
        return ApiError::not_found("not_found", "there is no such file").into_response();
    }
    match site.file("index.html") {
        Some(page) => respond(&page, request.headers()),
        None => axum::response::Html(NO_SITE).into_response(),
    }
}

fn respond(file: &Prepared, request: &HeaderMap) -> Response {
    let accepts = |name: header::HeaderName, value: &str| {
        request
            .get(name)
            .and_then(|given| given.to_str().ok())
            .is_some_and(|given| {
                given
                    .split(',')
                    .any(|part| part.trim().split(';').next() == Some(value))
            })
    };
    let unchanged = request.get(header::IF_NONE_MATCH) == Some(&file.etag);
    let gzip = file
        .gzip
        .as_ref()
        .filter(|_| accepts(header::ACCEPT_ENCODING, "gzip"));
    let mut response = if unchanged {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        Response::new(Body::from(gzip.unwrap_or(&file.plain).clone()))
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, file.etag.clone());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(file.cache));
    if unchanged {
        return response;
    }
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(file.content_type),
    );
    if file.gzip.is_some() {
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    if gzip.is_some() {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

fn prepare(path: &str, plain: Bytes) -> Prepared {
    let content_type = content_type(path);
    let compressible = !content_type.starts_with("image/")
        && !content_type.starts_with("audio/")
        && !content_type.starts_with("font/")
        || content_type == "image/svg+xml";
    let gzip = (compressible && plain.len() >= GZIP_BYTES_MIN)
        .then(|| compress(&plain))
        .flatten()
        .filter(|gzip| gzip.len() < plain.len());
    let hash = ids::sha256_hex(&plain);
    let etag = format!("\"{}\"", hash.get(..32).unwrap_or(&hash));
    Prepared {
        // The build puts a hash of the content into these names.
        cache: if path.starts_with("assets/") {
            "public, max-age=31536000, immutable"
        } else {
            "no-cache"
        },
        etag: HeaderValue::try_from(etag).expect("hex digits in quotes are a header value"),
        gzip,
        content_type,
        plain,
    }
}

fn compress(plain: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 3), Compression::new(6));
    encoder.write_all(plain).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

fn content_type(path: &str) -> &'static str {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "wasm" => "application/wasm",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "ogg" => "audio/ogg",
        "mp3" => "audio/mpeg",
        "glb" => "model/gltf-binary",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
