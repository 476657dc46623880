//! The rules for names: label keys, label values, resource names.
//!
//! The texts are the API machinery's: they end up in scheduling messages (a pod whose affinity does not
//! parse) and in configuration errors, where people search for them.

const LABEL_PART_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;

const LABEL_KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
     an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' \
     or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
     regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' \
     or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// What is wrong with a label key (which is also what Kubernetes calls a qualified name); empty if nothing is.
pub fn label_key_problems(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut parts = key.split('/');
    let (first, second) = (parts.next().unwrap_or_default(), parts.next());
    if parts.next().is_some() {
        problems.push(format!(
            "a valid label key {LABEL_KEY_RULE} with an optional DNS subdomain prefix and '/' (e.g. \
             'example.com/MyName')"
        ));
        return problems;
    }
    let name = match second {
        None => first,
        Some(name) => {
            if first.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                problems
                    .extend(subdomain_problems(first).into_iter().map(|text| format!("prefix part {text}")));
            }
            name
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_PART_MAX {
        problems.push(format!("name part must be no more than {LABEL_PART_MAX} bytes"));
    }
    if !is_label_text(name) {
        problems.push(format!("name part {LABEL_KEY_RULE}"));
    }
    problems
}

/// What is wrong with a label value; empty if nothing is.
pub fn label_value_problems(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > LABEL_PART_MAX {
        problems.push(format!("must be no more than {LABEL_PART_MAX} bytes"));
    }
    if !value.is_empty() && !is_label_text(value) {
        problems.push(LABEL_VALUE_RULE.to_owned());
    }
    problems
}

/// What is wrong with the DNS subdomain before the slash of a label key; empty if nothing is.
fn subdomain_problems(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > SUBDOMAIN_MAX {
        problems.push(format!("must be no more than {SUBDOMAIN_MAX} bytes"));
    }
    if !value.split('.').all(is_dns_label_text) {
        problems.push(SUBDOMAIN_RULE.to_owned());
    }
    problems
}

fn is_label_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    matches!((bytes.first(), bytes.last()), (Some(first), Some(last))
        if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric())
        && bytes.iter().all(inner)
}

fn is_dns_label_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    matches!((bytes.first(), bytes.last()), (Some(first), Some(last)) if edge(first) && edge(last))
        && bytes.iter().all(|byte| edge(byte) || *byte == b'-')
}

/// The resources that every node has and that are counted in fields of their own.
pub mod resource {
    /// Counted in thousandths of a core.
    pub const CPU: &str = "cpu";
    /// Counted in bytes.
    pub const MEMORY: &str = "memory";
    /// Counted in bytes.
    pub const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
    /// How many pods a node takes.
    pub const PODS: &str = "pods";

    const NATIVE_DOMAIN: &str = "kubernetes.io/";
    const QUOTA_PREFIX: &str = "requests.";

    /// Whether the scheduler counts the resource by its name: extended resources, huge pages, attachable
    /// volumes and names under `kubernetes.io/`. Others, such as `storage`, it leaves alone.
    pub fn is_scalar(name: &str) -> bool {
        is_extended(name)
            || is_huge_pages(name)
            || name.contains(NATIVE_DOMAIN)
            || name.starts_with("attachable-volumes-")
    }

    /// Whether the resource belongs to somebody other than Kubernetes, such as `example.com/gpu`.
    pub fn is_extended(name: &str) -> bool {
        // The quota name, `requests.` before the resource's own, must be a qualified name as well.
        name.contains('/')
            && !name.contains(NATIVE_DOMAIN)
            && !name.starts_with(QUOTA_PREFIX)
            && super::label_key_problems(&format!("{QUOTA_PREFIX}{name}")).is_empty()
    }

    /// Whether the resource is huge pages of some size.
    pub fn is_huge_pages(name: &str) -> bool {
        name.starts_with("hugepages-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_keys_and_values() {
        for good in ["a", "a.b/c", "app.kubernetes.io/name", "A_b-c.9"] {
            assert!(label_key_problems(good).is_empty(), "{good}");
        }
        for bad in ["", "/a", "a/", "a/b/c", "-a", "a-", "UPPER.case/a", "a..b/c", &"a".repeat(64), "ä"] {
            assert!(!label_key_problems(bad).is_empty(), "{bad}");
        }
        for good in ["", "a", "A.b_c-d", &"a".repeat(63)] {
            assert!(label_value_problems(good).is_empty(), "{good}");
        }
        for bad in ["-", "a b", "a/", &"a".repeat(64)] {
            assert!(!label_value_problems(bad).is_empty(), "{bad}");
        }
    }

    #[test]
    fn problems_read_as_the_api_machinery_writes_them() {
        // The texts of apimachinery v0.36.4, which counts bytes where releases before counted characters.
        let name = format!("name part {LABEL_KEY_RULE}");
        let prefix = format!("prefix part {SUBDOMAIN_RULE}");
        let whole = format!(
            "a valid label key {LABEL_KEY_RULE} with an optional DNS subdomain prefix and '/' (e.g. \
             'example.com/MyName')"
        );
        let (empty, long) = ("name part must be non-empty", "name part must be no more than 63 bytes");
        for (key, problems) in [
            ("UP/é/", &[&*whole][..]),
            ("/", &["prefix part must be non-empty", empty, &name]),
            (&"x".repeat(64), &[long]),
            (&format!("a/{}", "-".repeat(64)), &[long, &name]),
            (&format!("{}/a", "x".repeat(254)), &["prefix part must be no more than 253 bytes"]),
            ("a..b/c", &[&prefix]),
        ] {
            assert_eq!(label_key_problems(key), problems, "{key}");
        }
        let long = "must be no more than 63 bytes";
        for (value, problems) in [
            (&*"x".repeat(64), &[long][..]),
            (&"é".repeat(32), &[long, LABEL_VALUE_RULE]),
            ("a b", &[LABEL_VALUE_RULE]),
        ] {
            assert_eq!(label_value_problems(value), problems, "{value}");
        }
    }

    #[test]
    fn resource_names() {
        for scalar in ["example.com/gpu", "hugepages-2Mi", "attachable-volumes-x", "kubernetes.io/batch"] {
            assert!(resource::is_scalar(scalar), "{scalar}");
        }
        for other in ["cpu", "storage", "requests.cpu", "requests.example.com/gpu", "a/b/c", "example.com/"] {
            assert!(!resource::is_scalar(other), "{other}");
        }
        assert!(!resource::is_extended("kubernetes.io/batch"));
    }
}
