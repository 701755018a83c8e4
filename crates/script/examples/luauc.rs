//! Compiles scripts for tests of the browser's VM: reads `{path: source}` as
//! JSON from standard input, writes the bytecode of the client's built-in
//! scripts and of these as JSON with hex strings.

use std::collections::BTreeMap;
use std::io::Read as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input)?;
    let sources: BTreeMap<String, String> = serde_json::from_str(&input)?;
    let builtin: Vec<(String, String)> = frolic_script::client_builtin()
        .into_iter()
        .map(|script| (script.path.clone(), hex::encode(script.bytecode())))
        .collect();
    let mut scripts = BTreeMap::new();
    for (path, source) in &sources {
        let script = frolic_script::compile(path, source)?;
        scripts.insert(path, hex::encode(script.bytecode()));
    }
    let output = serde_json::json!({ "builtin": builtin, "scripts": scripts });
    println!("{output}");
    Ok(())
}
