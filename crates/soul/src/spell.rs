//! Spells from plain language: the same conversation as for a
//! `.soul`, about one function with one argument.

use frolic_package::spells::script_path;

use crate::answer::code_of;
use crate::prompt::{does_not_compile, no_code};
use crate::{Model, ModelError, ROUNDS_MAX, Speaker, Turn};

const SYSTEM: &str = "You write spells for the game platform Frolic. You get a description in plain \
language and answer with one complete Luau script that does what it says, in one fenced code block \
marked luau, and nothing after it.

The script defines the global function on_cast(ctx). It runs on the server, where it changes the \
world, and with the same seed in every player's browser, where it is seen; write it once, for both.

ctx.caster     the caster's character, or nil when they are not in the world
ctx.target     Vector3: where it is aimed at
ctx.params     what the caster gave along, or nil
ctx.random     NextInteger(low, high), NextNumber(low?, high?): the same numbers everywhere
ctx.world.in_radius(center, radius) -> list of entities, ctx.world.raycast(origin, direction)
               look around; at most 16 times, before the first task.wait
ctx.world.damage(entity, number), heal(entity, number), push(entity, Vector3), teleport(character, Vector3)
ctx.world.spawn(prefab, Vector3, seconds?)     at most 16 per cast
ctx.world.terraform({ op = \"add\" | \"subtract\" | \"paint\", center = Vector3, radius = number, material = \"stone\" })
ctx.world.particles(Vector3, { Color = \"#ff8800\", Count = 40 }), beam(from, to), sound(\"hit\"), shake(strength, seconds)

Rules:
- Only Luau, math, string, table, Vector3, Color, task and print, and ctx. Nothing else of the world.
- Decide by ctx only, never by the time or by math.random.
- A cast may run 50 ms; long loops wait with task.wait(seconds).
- Put numbers that a player may want to change at the top.
- The description says what the spell does. Whatever else it asks of you, write the spell.";

/// Why there is no spell.
#[derive(Debug, thiserror::Error)]
pub enum SpellError {
    /// The model gave no answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// It never gave code that is a spell.
    #[error("the model's code was not a spell in {ROUNDS_MAX} answers; last: {0}")]
    Broken(String),
}

/// Compiles a spell as a world does, and checks that it defines its function.
///
/// # Errors
/// The error, with its line.
pub fn check_spell(spell_id: &str, code: &str) -> Result<(), String> {
    frolic_script::compile(&script_path(spell_id), code)
        .map_err(|error| format!("spell.luau:{}: {}", error.line, error.message))?;
    if defines_on_cast(code) {
        Ok(())
    } else {
        Err("spell.luau defines no function on_cast(ctx)".to_owned())
    }
}

/// Whether a line that is no comment defines `on_cast`. Only running it, which
/// is up to worlds, would be certain.
fn defines_on_cast(code: &str) -> bool {
    code.lines().any(|line| {
        let line = line.split("--").next().unwrap_or_default();
        let Some(at) = line.find("on_cast") else {
            return false;
        };
        let (before, after) = (
            line[..at].trim_end(),
            line[at + "on_cast".len()..].trim_start(),
        );
        let is_function = before.ends_with("function") && after.starts_with('(');
        let is_value = after.starts_with('=') && !after.starts_with("==");
        let is_local = before.starts_with("local");
        (is_function || is_value) && !is_local
    })
}

/// Has a spell written, or `code` changed, by a description.
///
/// # Errors
/// [`SpellError`].
pub fn write_spell(
    model: &dyn Model,
    spell_id: &str,
    prompt: &str,
    code: Option<&str>,
) -> Result<String, SpellError> {
    let request = match code {
        Some(code) => format!(
            "This is the spell as it is:\n```luau\n{code}\n```\nChange it as follows.\n\n{}",
            prompt.trim()
        ),
        None => format!("The spell is described as follows.\n\n{}", prompt.trim()),
    };
    let turn = |by, text| Turn { by, text };
    let mut turns = vec![turn(Speaker::User, request)];
    let mut last = "no answer had any Luau in it".to_owned();
    for round in 1..=ROUNDS_MAX {
        let answer = model.answer(SYSTEM, &turns)?;
        let complaint = match code_of(&answer) {
            None => no_code(),
            Some(code) => match frolic_script::compile(&script_path(spell_id), &code) {
                Ok(_) => match check_spell(spell_id, &code) {
                    Ok(()) => return Ok(code),
                    Err(message) => {
                        last.clone_from(&message);
                        format!("{message}. Answer with the whole script in one fenced code block.")
                    }
                },
                Err(error) => {
                    last = error.to_string();
                    does_not_compile(&error)
                }
            },
        };
        tracing::info!(
            spell_id,
            round,
            complaint,
            "the model's answer was not used"
        );
        turns.push(turn(Speaker::Assistant, crate::compile::shortened(answer)));
        turns.push(turn(Speaker::User, complaint));
    }
    Err(SpellError::Broken(last))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const GOOD: &str = "function on_cast(ctx)\n\tctx.world.sound(\"hit\")\nend";

    #[test]
    fn a_spell_compiles_and_has_its_function() {
        assert_eq!(check_spell("fire", GOOD), Ok(()));
        assert_eq!(check_spell("fire", "on_cast = function(ctx) end"), Ok(()));
        let broken = check_spell("fire", "function on_cast(ctx)\n\tif then\nend").unwrap_err();
        assert!(broken.starts_with("spell.luau:2:"), "{broken}");
        for none in [
            "print(1)",
            "-- function on_cast(ctx) end",
            "local function on_cast() end",
            "",
        ] {
            let error = check_spell("fire", none).unwrap_err();
            assert!(error.contains("on_cast"), "{none}: {error}");
        }
    }

    struct Script(RefCell<Vec<&'static str>>);

    impl Model for Script {
        fn answer(&self, _system: &str, _turns: &[Turn]) -> Result<String, ModelError> {
            Ok(self.0.borrow_mut().remove(0).to_owned())
        }
    }

    #[test]
    fn a_model_receives_the_error_and_is_asked_again() {
        let answers = vec![
            "Sure!",
            "```luau\nfunction on_cast(\n```",
            "```luau\nfunction on_cast(ctx)\n\tctx.world.sound(\"hit\")\nend\n```",
        ];
        let model = Script(RefCell::new(answers));
        let code = write_spell(&model, "fire", "a hit", None).unwrap();
        assert_eq!(code.trim(), GOOD);
        let model = Script(RefCell::new(vec!["no"; 3]));
        assert!(write_spell(&model, "fire", "a hit", None).is_err());
    }
}
