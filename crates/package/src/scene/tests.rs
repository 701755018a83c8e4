//! Scenes read, refused with places, and written back byte for byte.
