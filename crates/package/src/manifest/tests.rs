//! Manifests read, and every mistake in one reported at its place.
