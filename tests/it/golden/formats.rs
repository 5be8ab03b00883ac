//! The tables of formats in the documentation are those of the program. `ETWPROF_BLESS=1` writes them anew.

use std::path::Path;

use etwprof::report::format::{ALL, Format};

fn endings(format: &Format) -> String {
    format.endings.iter().map(|ending| format!("`{ending}`")).collect::<Vec<_>>().join(", ")
}

fn of_the_guide() -> String {
    let mut table = "| format | extension | | opens in |\n|---|---|---|---|\n".to_owned();
    for format in ALL {
        table +=
            &format!("| `{}` | {} | {} | {} |\n", format.name, endings(format), format.about, format.viewers);
    }
    table
}

fn of_the_readme() -> String {
    let mut table = "| `-o` | | opens in |\n|---|---|---|\n".to_owned();
    for format in ALL {
        let usual = &format.endings[0];
        table += &format!("| `x{usual}` | {} | {} |\n", format.about, format.viewers);
    }
    table
}

fn check(file: &str, table: &str) {
    const START: &str = "<!-- formats -->\n";
    const END: &str = "<!-- end of formats -->";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = std::fs::read_to_string(&path).unwrap().replace("\r\n", "\n");
    let (before, rest) = text.split_once(START).unwrap_or_else(|| panic!("{file} has no {START}"));
    let (is, after) = rest.split_once(END).unwrap_or_else(|| panic!("{file} has no {END}"));
    if std::env::var_os("ETWPROF_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, format!("{before}{START}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(is, table, "{file}: ETWPROF_BLESS=1 writes it anew");
    }
}

#[test]
fn the_guide_lists_every_format() {
    check("docs/guide.md", &of_the_guide());
}

#[test]
fn the_readme_lists_every_format() {
    check("README.md", &of_the_readme());
}
