//! The language model that the configuration names, for scripts and spells in plain language.

use frolic_soul::{ApiSettings, MessagesApi, ModelError};

use crate::config::{self, Layer};

/// The model that the configuration names.
///
/// # Errors
/// When it names none.
pub fn model() -> anyhow::Result<MessagesApi> {
    let layer = config::load(Layer::default(), None)?;
    let mut settings = ApiSettings::new(layer.soul_api_key.ok_or(ModelError::NoKey)?);
    if let Some(url) = layer.soul_api_url {
        settings.url = url;
    }
    if let Some(model) = layer.soul_model {
        settings.model = model;
    }
    Ok(MessagesApi::new(settings)?)
}
