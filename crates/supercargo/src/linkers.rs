//! Which linker links a binary, as far as Cargo tells a build script: not all of them take a script. See build.rs.

/// Linkers that take no script.
const WITHOUT_SCRIPTS: [&str; 3] = ["mold", "gold", "wild"];

/// Whether the linker takes a script, given the one that Cargo was told to use, and the flags of rustc, encoded as Cargo does it.
///
/// A compiler that links with another linker by itself, because its default is another one or something stands in its way, is not seen
/// through.
pub(crate) fn takes_scripts(linker: &str, encoded_flags: &str) -> bool {
    // One flag may hold several arguments of the linker.
    let named = encoded_flags.split(['\u{1f}', ' ']).filter_map(linker_of);
    !named.chain([linker]).any(is_without_scripts)
}

/// The linker that a flag names, or the folder in which the compiler looks for one.
fn linker_of(flag: &str) -> Option<&str> {
    let option = ["-C", "--codegen="].iter().find_map(|prefix| flag.strip_prefix(prefix)).unwrap_or(flag);
    if let Some(linker) = option.strip_prefix("linker=") {
        return Some(linker);
    }
    let arguments = ["link-arg=", "link-args="].iter().find_map(|name| option.strip_prefix(name));
    let argument = arguments.unwrap_or(option);
    ["-fuse-ld=", "--ld-path=", "-B"].iter().find_map(|name| argument.strip_prefix(name))
}

/// Whether a linker is known to take no script, by the name of its file, such as `ld.gold` or `x86_64-linux-gnu-gold`.
fn is_without_scripts(path: &str) -> bool {
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    name.split(['-', '.', '_']).any(|part| WITHOUT_SCRIPTS.contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linkers_that_take_no_scripts_are_known_by_their_names() {
        for (linker, flags, expected) in [
            ("", &[][..], true),
            ("clang", &["-C", "link-arg=-fuse-ld=lld"], true),
            ("/usr/bin/mold", &[], false),
            ("/usr/bin/x86_64-linux-gnu-ld.gold", &[], false),
            ("wild", &[], false),
            ("", &["-C", "linker=/opt/mold/bin/mold"], false),
            ("", &["-Clinker=ld.mold"], false),
            ("clang", &["-C", "link-arg=-fuse-ld=mold"], false),
            ("clang", &["-Clink-arg=-fuse-ld=/usr/bin/ld.gold"], false),
            ("clang", &["--codegen=link-arg=--ld-path=/usr/bin/wild"], false),
            ("cc", &["-C", "link-args=-Wl,-z,now -fuse-ld=gold"], false),
            ("cc", &["-Clink-arg=-B/usr/libexec/mold"], false),
            ("cc", &["-Clink-arg=-B/usr/libexec/mold/"], false),
            // Folders and libraries whose names happen to have such a name in them.
            ("/opt/marigold/bin/cc", &[], true),
            ("/opt/gold/bin/clang", &[], true),
            ("cc", &["-L", "native=/opt/marigold/lib", "-Clink-arg=-L/opt/gold"], true),
            ("cc", &["-Clink-arg=/opt/wild/libmold.a", "--cfg", "gold"], true),
            ("moldy-cc", &["-C", "target-cpu=native"], true),
        ] {
            assert_eq!(takes_scripts(linker, &flags.join("\u{1f}")), expected, "{linker} {flags:?}");
        }
    }
}
