//! The web site: files embedded in the binary, compressed once, and `index.html` for
//! every URL that the single-page application renders. The site's own list decides
//! which URLs are pages (`site/pages.rs`).

mod pages;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

use crate::core::Core;
use crate::core::encoding::{self, Encoding};
use crate::core::error::ApiError;
use crate::core::ids;
use pages::Pages;

/// First path segments of the APIs: unknown URLs below them are JSON errors, not
/// pages.
const API_ROOTS: [&str; 4] = ["api", "internal", "cdn", "socket.io"];
/// Shown when the binary was built without the site.
const NO_SITE: &str = "<!doctype html><meta charset=\"utf-8\"><title>Frolic</title><h1>Frolic is \
    running, but without its web site</h1><p>This binary was built without the web pages. Run \
    <code>cargo xtask serve</code>, which builds both.</p>";
/// Suffix of files that the build compressed with brotli.
const BROTLI_SUFFIX: &str = ".br";

/// Source of the site's files; the binary embeds them.
pub trait SiteFiles: Send + Sync + 'static {
    /// The file at `path`, which has no leading slash.
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

/// The site with its prepared responses.
pub struct Site {
    core: Arc<Core>,
    files: Box<dyn SiteFiles>,
    /// Bounded by the number of files in the binary: misses are not stored.
    prepared: Mutex<HashMap<String, Arc<Prepared>>>,
    pages: Pages,
}

struct Prepared {
    plain: Bytes,
    brotli: Option<Bytes>,
    gzip: Option<Bytes>,
    etag: HeaderValue,
    content_type: &'static str,
    cache: &'static str,
}

impl Site {
    pub fn new(core: Arc<Core>, files: Box<dyn SiteFiles>) -> Self {
        let pages = Pages::read(files.file(pages::FILE).as_deref());
        Self {
            core,
            files,
            prepared: Mutex::default(),
            pages,
        }
    }

    fn file(&self, path: &str) -> Option<Arc<Prepared>> {
        if let Some(prepared) = self.prepared().get(path) {
            return Some(prepared.clone());
        }
        let plain = self.bytes(path)?;
        let brotli = self.bytes(&format!("{path}{BROTLI_SUFFIX}"));
        let prepared = Arc::new(prepare(path, plain, brotli));
        self.prepared().insert(path.to_owned(), prepared.clone());
        Some(prepared)
    }

    fn bytes(&self, path: &str) -> Option<Bytes> {
        Some(match self.files.file(path)? {
            Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            Cow::Owned(bytes) => Bytes::from(bytes),
        })
    }

    fn prepared(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Prepared>>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fallback of the router, for every URL without an endpoint.
pub async fn serve(State(site): State<Arc<Site>>, request: Request) -> Response {
    let path = request.uri().path().trim_start_matches('/');
    let root = path.split('/').next().unwrap_or_default();
    if API_ROOTS.contains(&root) {
        return ApiError::not_found("not_found", "URL not found").into_response();
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return ApiError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "this URL does not support this method",
        )
        .into_response();
    }
    if let Some(file) = site.file(path).filter(|_| !path.is_empty()) {
        return respond(&file, request.headers());
    }
    // Do not answer a missing script with a page: the browser would report a syntax
    // error instead of a missing file.
    if root == "assets" {
        return ApiError::not_found("not_found", "file not found").into_response();
    }
    let Some(index) = site.file("index.html") else {
        return axum::response::Html(NO_SITE).into_response();
    };
    if site.pages.is_page(&site.core, path).await {
        return respond(&index, request.headers());
    }
    // The page itself shows "not found". Without 304: it would tell a browser that
    // its cached 404 is valid.
    let mut headers = request.headers().clone();
    headers.remove(header::IF_NONE_MATCH);
    let mut response = respond(&index, &headers);
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

fn respond(file: &Prepared, request: &HeaderMap) -> Response {
    let unchanged = request.get(header::IF_NONE_MATCH) == Some(&file.etag);
    let packed = |encoding| match encoding {
        Encoding::Brotli => file.brotli.as_ref(),
        Encoding::Gzip => file.gzip.as_ref(),
        Encoding::Zstd => None,
    };
    let mut offered = vec![Encoding::Brotli, Encoding::Gzip];
    offered.retain(|encoding| packed(*encoding).is_some());
    let chosen = encoding::negotiate(request, &offered);
    let bytes = chosen.and_then(packed).unwrap_or(&file.plain);
    let mut response = if unchanged {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        Response::new(Body::from(bytes.clone()))
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, file.etag.clone());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(file.cache));
    if !offered.is_empty() {
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    if unchanged {
        return response;
    }
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(file.content_type),
    );
    if let Some(encoding) = chosen {
        let name = HeaderValue::from_static(encoding.name());
        headers.insert(header::CONTENT_ENCODING, name);
    }
    response
}

fn prepare(path: &str, plain: Bytes, brotli: Option<Bytes>) -> Prepared {
    let content_type = content_type(path);
    let gzip = encoding::is_compressible(content_type)
        .then(|| Encoding::Gzip.compress(&plain))
        .flatten();
    let hash = ids::sha256_hex(&plain);
    // Weak, because all encodings share it.
    let etag = format!("W/\"{}\"", hash.get(..32).unwrap_or(&hash));
    Prepared {
        // The build puts a hash of the content into these names.
        cache: if path.starts_with("assets/") {
            "public, max-age=31536000, immutable"
        } else {
            "no-cache"
        },
        etag: HeaderValue::try_from(etag).expect("hex digits in quotes are a valid header value"),
        brotli,
        gzip,
        content_type,
        plain,
    }
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
