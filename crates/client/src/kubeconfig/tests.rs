use super::*;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder can be made")
}

fn write(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().expect("it is in the folder")).expect("a folder can be made");
    std::fs::write(&path, text).expect("written");
    path
}

fn user_of(list: &[&Path]) -> Result<Kubeconfig, NoKubeconfig> {
    let list = std::env::join_paths(list).expect("no colons").into_string().expect("text");
    Kubeconfig::of_user(&Environment { kubeconfig: Some(list), ..Environment::default() })
}

const FIRST: &str = "
current-context: a
clusters:
- {name: here, cluster: {server: 'https://first'}}
contexts:
- {name: a, context: {cluster: here, user: u}}
users: null
";
const SECOND: &str = "
current-context: b
clusters:
- {name: here, cluster: {server: 'https://second'}}
- {name: there, cluster: {server: 'https://there', certificate-authority: ca.crt}}
contexts:
- {name: b, context: {cluster: there, user: u}}
users:
- {name: u, user: {tokenFile: tokens/u}}
";

#[test]
fn of_several_files_the_first_value_for_a_name_counts() {
    let folder = folder();
    let (first, second) = (write(&folder, "first", FIRST), write(&folder, "other/second", SECOND));
    let missing = folder.path().join("missing");
    let kubeconfig =
        user_of(&[&missing, &first, &second, &first]).unwrap_or_else(|error| panic!("{error:?}"));
    let choice = kubeconfig.choose(None).unwrap_or_else(|fault| panic!("{fault:?}"));
    assert_eq!((choice.name, &*choice.cluster.words.server), ("a", "https://first"));
    let user = choice.user.expect("the second file has it");
    assert_eq!(user.path(&user.words.token_file), folder.path().join("other/tokens/u"));
    let choice = kubeconfig.choose(Some("b")).unwrap_or_else(|fault| panic!("{fault:?}"));
    assert_eq!(choice.cluster.path("ca.crt"), folder.path().join("other/ca.crt"));
    assert_eq!(choice.cluster.path("/etc/ca.crt"), Path::new("/etc/ca.crt"));
}

#[test]
fn without_the_variable_it_is_in_the_home_folder() {
    let folder = folder();
    let environment = Environment { home: Some(folder.path().to_owned()), ..Environment::default() };
    let Err(NoKubeconfig::Missing(reason)) = Kubeconfig::of_user(&environment) else {
        panic!("there is none")
    };
    assert!(reason.contains("$KUBECONFIG is not set") && reason.contains(".kube/config"), "{reason}");
    write(&folder, ".kube/config", SECOND);
    let kubeconfig = Kubeconfig::of_user(&environment).unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!(kubeconfig.choose(None).map(|choice| choice.name.to_owned()), Ok("b".to_owned()));
}

#[test]
fn files_that_are_all_missing_are_named() {
    let missing = |list: &[&Path]| match user_of(list) {
        Err(NoKubeconfig::Missing(reason)) => reason,
        Err(NoKubeconfig::Faulty(fault)) => panic!("{fault:?}"),
        Ok(_) => panic!("there is none"),
    };
    assert_eq!(missing(&[Path::new("garbage")]), "$KUBECONFIG names garbage, and there is no such file");
    let both = missing(&[Path::new("/nope"), Path::new("/neither")]);
    assert_eq!(both, "$KUBECONFIG names /nope:/neither, and none of these files is there");
}

#[test]
fn what_is_wrong_is_said_with_its_line_and_without_a_word_of_the_file() {
    let folder = folder();
    for (text, expected) in [
        ("users:\n- name: u\n  user: secret\n", "line 3, column 9: a mapping is expected there"),
        ("users: secret\n", "line 1, column 8: "),
        ("users:\n- name: u\n  user:\n    token: [secret]\n", "line 4, column 12: "),
        ("a: b\nsecret: [\n", "this is not YAML"),
        ("secret\n", "line 1, column 1: a mapping is expected there"),
        (
            "users:\n- {name: u, user: {}}\n- {name: u, user: {}}\n",
            "users: the name \"u\" stands there twice",
        ),
        ("users: []\nusers: []\n", "a key stands there a second time"),
        ("\tclusters: secret\n", "line 1"),
    ] {
        let path = write(&folder, "kubeconfig", text);
        let Err(fault) = Kubeconfig::from_file(&path) else { panic!("{text} is read") };
        assert_eq!(fault.file, path);
        assert!(fault.reason.contains(expected), "{:?} has no {expected:?}", fault.reason);
        assert!(!fault.reason.contains("secret") && !fault.reason.contains("Words"), "{}", fault.reason);
    }
    std::fs::write(folder.path().join("kubeconfig"), b"\xff\xfe").expect("written");
    let Err(fault) = Kubeconfig::from_file(&folder.path().join("kubeconfig")) else { panic!("no text") };
    assert!(fault.reason.contains("not text"), "{fault:?}");
    let Err(fault) = Kubeconfig::from_file(folder.path()) else { panic!("a folder is no kubeconfig") };
    assert!(!fault.reason.is_empty());
}

#[test]
fn an_empty_file_has_no_context() {
    let folder = folder();
    let path = write(&folder, "kubeconfig", "");
    let kubeconfig = Kubeconfig::from_file(&path).unwrap_or_else(|fault| panic!("{fault:?}"));
    let Err(fault) = kubeconfig.choose(None) else { panic!("there is none") };
    assert!(fault.reason.starts_with("it has no current-context; choose one with --context"), "{fault:?}");
}

#[test]
fn a_name_that_is_not_there_is_met_with_those_that_are() {
    let folder = folder();
    let text = "
contexts:
- {name: a, context: {cluster: here, user: nobody}}
- {name: b, context: {cluster: nowhere, user: u}}
- {name: c, context: {cluster: here}}
clusters:
- {name: here, cluster: {server: 'https://here'}}
";
    let kubeconfig = Kubeconfig::from_file(&write(&folder, "kubeconfig", text));
    let kubeconfig = kubeconfig.unwrap_or_else(|fault| panic!("{fault:?}"));
    for (context, expected) in [
        ("d", "there is no context \"d\" in it: known: a, b, c"),
        ("a", "the context \"a\" names the user \"nobody\", who is not there: there is none"),
        ("b", "the context \"b\" names the cluster \"nowhere\", which is not there: known: here"),
    ] {
        let Err(fault) = kubeconfig.choose(Some(context)) else { panic!("{context} is whole") };
        assert_eq!(fault.reason, expected);
    }
    assert!(kubeconfig.choose(Some("c")).is_ok_and(|choice| choice.user.is_none()));
}
