//! A name in a path, with its percent signs read.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use crate::error::ApiError;

/// The one part of a path that a route leaves open.
#[derive(Debug)]
pub(crate) struct Named(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(name)| Self(name)).map_err(|_| {
            ApiError::bad_request("the path is no UTF-8 once its percent signs are read")
        })
    }
}
