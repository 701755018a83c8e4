//! Writes the seeds of a target into a folder: `seeds TARGET FOLDER`. Without
//! arguments it lists the targets.

use std::fs;
use std::io;
use std::path::Path;

use frolic_fuzzing::TARGETS;

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, folder] = args.as_slice() else {
        TARGETS
            .iter()
            .for_each(|target| println!("{}", target.name));
        return Ok(());
    };
    let target = TARGETS.iter().find(|target| target.name == name);
    let target = target.ok_or_else(|| io::Error::other(format!("there is no target {name}")))?;
    fs::create_dir_all(folder)?;
    for (number, seed) in (target.seeds)().iter().enumerate() {
        fs::write(Path::new(folder).join(format!("seed-{number}")), seed)?;
    }
    Ok(())
}
