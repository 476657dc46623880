use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use rustls::pki_types::CertificateDer;
use tokio::time::{Duration, advance};

use super::client::Authority;
use crate::flags::TlsVersion;
use crate::serve::certificate::{CertificateSource, ClientAuthority, FollowedAuthority, Tls, TlsOptions};
use crate::serve::{User, subject};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A new pair in these files.
fn write_pair(certificate: &Path, key: &Path) {
    let pair = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a pair");
    fs::write(certificate, pair.cert.pem()).expect("written");
    fs::write(key, pair.signing_key.serialize_pem()).expect("written");
}

#[tokio::test(start_paused = true)]
async fn a_new_pair_is_taken_and_half_of_one_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    write_pair(&certificate, &key);
    let source = CertificateSource::Files { certificate: certificate.clone(), key: key.clone() };
    let mut tls =
        Tls::new(source, ClientAuthority::None, TlsOptions::default(), LOOPBACK).expect("good files");
    let first = tls.config();
    write_pair(&certificate, &key);
    assert!(Arc::ptr_eq(&first, &tls.config()), "files are not read at every handshake");
    advance(Duration::from_secs(11)).await;
    let second = tls.config();
    assert!(!Arc::ptr_eq(&first, &second), "the new pair");
    write_pair(&certificate, &folder.path().join("elsewhere"));
    advance(Duration::from_secs(11)).await;
    assert!(Arc::ptr_eq(&second, &tls.config()), "the key is not there yet");
    fs::rename(folder.path().join("elsewhere"), &key).expect("renamed");
    advance(Duration::from_secs(11)).await;
    let third = tls.config();
    assert!(!Arc::ptr_eq(&second, &third));
    advance(Duration::from_secs(11)).await;
    assert!(Arc::ptr_eq(&third, &tls.config()), "nothing has changed");
    fs::remove_file(&key).expect("removed");
    advance(Duration::from_secs(11)).await;
    assert!(Arc::ptr_eq(&third, &tls.config()), "the old pair stays");
}

#[tokio::test(start_paused = true)]
async fn a_new_authority_is_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ca.crt");
    fs::write(&path, Authority::new().pem).expect("written");
    let authority = ClientAuthority::File(path.clone());
    let mut tls = Tls::new(CertificateSource::SelfSigned, authority, TlsOptions::default(), LOOPBACK)
        .expect("good files");
    let first = tls.config();
    fs::write(&path, Authority::new().pem).expect("written");
    advance(Duration::from_secs(11)).await;
    assert!(!Arc::ptr_eq(&first, &tls.config()));
}

#[tokio::test(start_paused = true)]
async fn an_authority_that_is_followed_is_taken_and_a_bad_one_is_not() {
    let followed = FollowedAuthority::default();
    let authority = ClientAuthority::Followed(followed.clone());
    let mut tls = Tls::new(CertificateSource::SelfSigned, authority, TlsOptions::default(), LOOPBACK)
        .expect("none yet");
    let first = tls.config();
    assert!(followed.set(Authority::new().pem));
    advance(Duration::from_secs(11)).await;
    let second = tls.config();
    assert!(!Arc::ptr_eq(&first, &second));
    followed.set("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n".to_owned());
    advance(Duration::from_secs(11)).await;
    assert!(Arc::ptr_eq(&second, &tls.config()), "the old one stays");
}

#[tokio::test(start_paused = true)]
async fn a_client_certificate_is_judged_by_the_authority_and_the_time_of_now() {
    let (first, second) = (Authority::new(), Authority::new());
    let followed = FollowedAuthority::new(Some(first.pem.clone()));
    let authority = ClientAuthority::Followed(followed.clone());
    let mut tls = Tls::new(CertificateSource::SelfSigned, authority, TlsOptions::default(), LOOPBACK)
        .expect("a good authority");
    let chain = [CertificateDer::from(first.sign("admin", &[]).0)];
    assert_eq!(tls.verify(&chain), Ok(()));
    // Certificates of tests are good until the year 4096.
    tls.clock = || "4097-01-01T00:00:00Z".parse().expect("a time");
    let error = tls.verify(&chain).expect_err("the certificate has expired");
    assert!(error.contains("expired"), "{error}");
    tls.clock = crate::clock::time_of_day;
    assert_eq!(tls.verify(&chain), Ok(()));
    followed.set(second.pem);
    advance(Duration::from_secs(11)).await;
    assert!(tls.verify(&chain).is_err(), "another authority");
}

#[tokio::test(start_paused = true)]
async fn a_folder_keeps_what_was_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("certificates");
    let new = || {
        Tls::new(
            CertificateSource::Folder(inner.clone()),
            ClientAuthority::None,
            TlsOptions::default(),
            LOOPBACK,
        )
    };
    new().expect("a pair is made");
    let key = inner.join("kube-scheduler.key");
    let made = fs::read(&key).expect("the key is there");
    let mode = fs::metadata(&key).expect("the key is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    new().expect("the pair is read");
    assert_eq!(fs::read(&key).expect("the key is there"), made);
}

#[test]
fn bad_files_say_what_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    let source = || CertificateSource::Files { certificate: certificate.clone(), key: key.clone() };
    let message = |authority| match Tls::new(source(), authority, TlsOptions::default(), LOOPBACK) {
        Ok(_) => panic!("bad files"),
        Err(error) => error.to_string(),
    };
    assert!(message(ClientAuthority::None).contains("tls.crt: No such file"));
    write_pair(&certificate, &key);
    fs::write(&key, "nonsense").expect("written");
    assert!(message(ClientAuthority::None).starts_with("private key: "));
    write_pair(&certificate, &key);
    assert!(message(ClientAuthority::Pem(String::new())).starts_with("client authority: "));
    write_pair(&folder.path().join("other"), &key);
    assert!(message(ClientAuthority::None).starts_with("certificate and key: "));
}

#[tokio::test(start_paused = true)]
async fn versions_and_suites_are_limited() {
    let speaks = |version_min, names: &[&str]| {
        let options =
            TlsOptions { version_min, cipher_suites: names.iter().map(|name| (*name).to_owned()).collect() };
        let tls = Tls::new(CertificateSource::SelfSigned, ClientAuthority::None, options, LOOPBACK);
        let config = tls.expect("good options").config();
        let suites = &config.crypto_provider().cipher_suites;
        suites.iter().filter(|suite| suite.tls13().is_none()).count()
    };
    let all = speaks(TlsVersion::Tls12, &[]);
    assert!(all >= 4);
    assert_eq!(
        speaks(TlsVersion::Tls12, &["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_RSA_WITH_RC4_128_SHA"]),
        1
    );
    assert_eq!(speaks(TlsVersion::Tls12, &["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"]), 1, "Go's name of it");
    assert_eq!(speaks(TlsVersion::Tls12, &["TLS_AES_128_GCM_SHA256"]), 0, "only TLS 1.3 is left");
    assert_eq!(speaks(TlsVersion::Tls13, &[]), all);
}

#[test]
fn a_certificate_names_a_user_and_groups() {
    let authority = Authority::new();
    let (certificate, _) = authority.sign("system:kube-ü", &["system:masters"]);
    let expected = User {
        name: "system:kube-ü".to_owned(),
        groups: vec!["system:masters".to_owned()],
        ..User::default()
    };
    assert_eq!(subject::user(&certificate), Some(expected));
    let (long, _) = authority.sign(&"n".repeat(300), &[]);
    assert_eq!(subject::user(&long).map(|user| user.name.len()), Some(300));
    for length in 0..certificate.len() {
        assert_eq!(subject::user(&certificate[..length]), None, "cut off after {length} bytes");
    }
}

proptest! {
    #[test]
    fn no_certificate_panics(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let certificate = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a pair").cert;
        let mut bytes = certificate.der().to_vec();
        for (index, byte) in changes {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        let _ = subject::user(&bytes);
    }
}
