//! Identities of another issuer: its tokens open accounts; forged tokens do not.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use frolic_platform::api::{Account, LoginResponse};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::support::issuer::{AUDIENCE, ISSUER, Issuer, SigningKey};
use crate::support::{START_MS, TestPlatform, error_of};

async fn start(issuer: &Issuer) -> TestPlatform {
    TestPlatform::start_with(|settings| settings.identity = Some(issuer.settings())).await
}

async fn exchange(platform: &TestPlatform, token: &str) -> Response {
    let body = json!({ "token": token });
    let request = platform.request(Method::POST, "/api/login/identity");
    request.json(&body).send().await.unwrap()
}

async fn login(platform: &TestPlatform, token: &str) -> LoginResponse {
    let response = exchange(platform, token).await;
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert_eq!(status, StatusCode::OK, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn a_jwt_opens_the_same_account_every_time() {
    let (rsa, ec) = (SigningKey::rsa(), SigningKey::ec());
    let issuer = Issuer::start(&[&rsa, &ec]).await;
    let platform = start(&issuer).await;
    let first = login(&platform, &rsa.sign(json!({ "preferred_username": "Ada" }))).await;
    assert_eq!(
        (first.username.as_str(), first.kind.as_str()),
        ("Ada", "account")
    );
    assert_eq!(first.role, "creator");
    // An EC key of the same issuer and another name: only the subject identifies the account.
    let again = login(&platform, &ec.sign(json!({ "preferred_username": "Eve" }))).await;
    assert_eq!(again.client_id, first.client_id);
    let other = login(
        &platform,
        &ec.sign(json!({ "sub": "user-2", "name": "ada@example.org" })),
    )
    .await;
    assert_ne!(other.client_id, first.client_id);
    assert_eq!(other.username, "ada2");

    // The JWT itself is a bearer token too.
    let request = platform.request(Method::GET, "/api/me");
    let response = request
        .bearer_auth(rsa.sign(json!({})))
        .send()
        .await
        .unwrap();
    let me: Account = response.json().await.unwrap();
    assert_eq!(
        (me.client_id, me.means.as_str()),
        (first.client_id, "identity")
    );
    assert_eq!(me.identity_issuer.as_deref(), Some(ISSUER));
    assert!(!me.has_password);
    let joined = platform.try_join(&rsa.sign(json!({})), json!({})).await;
    assert_eq!(joined.status(), StatusCode::OK);
    assert_eq!(issuer.fetches(), 1, "the keys are cached");
}

#[tokio::test]
async fn concurrent_logins_of_a_new_identity_create_one_account() {
    let rsa = SigningKey::rsa();
    let issuer = Issuer::start(&[&rsa]).await;
    let platform = start(&issuer).await;
    let token = rsa.sign(json!({}));
    let logins = (0..12).map(|_| login(&platform, &token));
    let mut ids: Vec<_> = futures_util::future::join_all(logins)
        .await
        .into_iter()
        .map(|login| login.client_id)
        .collect();
    ids.dedup();
    assert_eq!(ids.len(), 1, "{ids:?}");
    assert_eq!(issuer.fetches(), 1);
}

#[tokio::test]
async fn a_guest_becomes_the_account_of_an_identity() {
    let rsa = SigningKey::rsa();
    let issuer = Issuer::start(&[&rsa]).await;
    let platform = start(&issuer).await;
    let guest = platform.login("Zoe").await;
    let request = platform.request(Method::POST, "/api/login/identity");
    let body = json!({ "token": rsa.sign(json!({})) });
    let response = request.bearer_auth(&guest.session_token).json(&body);
    let account: LoginResponse = response.send().await.unwrap().json().await.unwrap();
    assert_eq!(account.client_id, guest.client_id);
    assert_eq!(
        (account.username.as_str(), account.kind.as_str()),
        ("Zoe", "account")
    );
    // The guest's own token is invalid.
    let response = platform.try_join(&guest.session_token, json!({})).await;
    assert_eq!(error_of(response).await.0, 401);
}

#[tokio::test]
async fn forged_and_foreign_tokens_are_refused() {
    let (rsa, ec) = (SigningKey::rsa(), SigningKey::ec());
    let issuer = Issuer::start(&[&rsa, &ec]).await;
    let platform = start(&issuer).await;
    let now_s = START_MS / 1000;
    let good = rsa.sign(json!({}));
    let parts: Vec<&str> = good.split('.').collect();
    let coded = |value: Value| BASE64.encode(value.to_string());
    let admin = coded(json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "root", "exp": now_s + 600 }));
    // A classic attack: the published key as the secret of an HMAC.
    let published = serde_json::to_vec(&rsa.public()).unwrap();
    let mut hmac = Header::new(Algorithm::HS256);
    hmac.kid = Some("rsa-1".to_owned());
    let claims = json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "root", "exp": now_s + 600 });
    let confused = encode(&hmac, &claims, &EncodingKey::from_secret(&published)).unwrap();
    for (case, token) in [
        (
            "another issuer",
            rsa.sign(json!({ "iss": "https://evil.test/" })),
        ),
        (
            "another audience",
            rsa.sign(json!({ "aud": "another-site" })),
        ),
        ("no audience", rsa.sign(json!({ "aud": null }))),
        ("no subject", rsa.sign(json!({ "sub": null }))),
        ("an empty subject", rsa.sign(json!({ "sub": "" }))),
        (
            "a long subject",
            rsa.sign(json!({ "sub": "x".repeat(300) })),
        ),
        ("no expiry", rsa.sign(json!({ "exp": null }))),
        (
            "an expiry that is not a number",
            rsa.sign(json!({ "exp": "never" })),
        ),
        ("not valid yet", rsa.sign(json!({ "nbf": now_s + 3600 }))),
        (
            "a stranger's key under a known id",
            SigningKey::next_rsa().named_as(&rsa).sign(json!({})),
        ),
        (
            "a key of another kind under a known id",
            ec.clone().named_as(&rsa).sign(json!({})),
        ),
        (
            "a key that is not published",
            SigningKey::next_rsa().sign(json!({})),
        ),
        (
            "no signature",
            format!("{}.{}.", coded(json!({ "alg": "none" })), admin),
        ),
        (
            "other claims under the signature",
            format!("{}.{admin}.{}", parts[0], parts[2]),
        ),
        ("an HMAC with the public key", confused),
        ("nonsense", "a.b.c".to_owned()),
        (
            "a token that is too long",
            format!("{good}{}", "A".repeat(9_000)),
        ),
    ] {
        let response = exchange(&platform, &token).await;
        assert_eq!(
            error_of(response).await,
            (401, "invalid_token".to_owned()),
            "{case}"
        );
        let response = platform.try_join(&token, json!({})).await;
        assert_eq!(error_of(response).await.0, 401, "{case}");
    }
    // Within the leeway, then after it.
    platform.clock.advance_ms(650_000);
    login(&platform, &good).await;
    platform.clock.advance_ms(15_000);
    let response = exchange(&platform, &good).await;
    assert_eq!(
        error_of(response).await,
        (401, "session_expired".to_owned())
    );
}

#[tokio::test]
async fn keys_rotate_and_cached_keys_survive_an_outage_of_the_issuer() {
    let (rsa, next) = (SigningKey::rsa(), SigningKey::next_rsa());
    let issuer = Issuer::start(&[&rsa]).await;
    let mut settings = issuer.settings();
    settings.keys_retry_after = Duration::ZERO;
    let platform = TestPlatform::start_with(|s| s.identity = Some(settings)).await;
    let first = login(&platform, &rsa.sign(json!({}))).await;
    // A new key is found at once, and the old one is not accepted any more.
    issuer.publish(&[&next]);
    assert_eq!(
        login(&platform, &next.sign(json!({}))).await.client_id,
        first.client_id
    );
    let response = exchange(&platform, &rsa.sign(json!({}))).await;
    assert_eq!(error_of(response).await, (401, "invalid_token".to_owned()));
    // While the issuer is down or sends an endless response, cached keys still work and new ones do
    // not.
    issuer.go_down();
    login(&platform, &next.sign(json!({}))).await;
    issuer.respond_endlessly();
    login(&platform, &next.sign(json!({}))).await;
    let response = exchange(&platform, &rsa.sign(json!({}))).await;
    assert_eq!(error_of(response).await.0, 401);
}

#[tokio::test]
async fn tokens_with_unknown_keys_cause_few_requests_to_the_issuer() {
    let rsa = SigningKey::rsa();
    let issuer = Issuer::start(&[&rsa]).await;
    let platform = start(&issuer).await;
    let stranger = SigningKey::next_rsa().sign(json!({}));
    for _ in 0..20 {
        assert_eq!(error_of(exchange(&platform, &stranger).await).await.0, 401);
    }
    assert_eq!(issuer.fetches(), 1);

    issuer.go_down();
    let cold = start(&issuer).await;
    let response = exchange(&cold, &rsa.sign(json!({}))).await;
    assert_eq!(response.headers()["retry-after"], "5");
    assert_eq!(
        error_of(response).await,
        (503, "identity_unavailable".to_owned())
    );
}

#[tokio::test]
async fn without_an_issuer_jwts_are_refused() {
    let platform = TestPlatform::start().await;
    let token = SigningKey::rsa().sign(json!({}));
    let response = exchange(&platform, &token).await;
    assert_eq!(error_of(response).await, (404, "identity_off".to_owned()));
    let response = platform.try_join(&token, json!({})).await;
    assert_eq!(error_of(response).await, (401, "invalid_token".to_owned()));
}
