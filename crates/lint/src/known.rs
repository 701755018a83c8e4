//! The names that scripts can use on either side: the API's and Luau's own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use frolic_script::api::{MemberKind, Page, PageKind, Side, pages};

/// Luau's own functions that scripts have, or may have.
const LUAU: &[&str] = &[
    "_G",
    "_VERSION",
    "assert",
    "bit32",
    "buffer",
    "coroutine",
    "debug",
    "error",
    "getmetatable",
    "ipairs",
    "math",
    "newproxy",
    "next",
    "os",
    "pairs",
    "pcall",
    "rawequal",
    "rawget",
    "rawlen",
    "rawset",
    "select",
    "setmetatable",
    "shared",
    "string",
    "table",
    "tonumber",
    "tostring",
    "type",
    "unpack",
    "utf8",
    "vector",
    "xpcall",
];

/// Members of Luau's own libraries. One too many is a mistake that is not found,
/// one too few a false alarm.
const LUAU_MEMBERS: &[(&str, &str)] = &[
    (
        "bit32",
        "arshift band bnot bor btest bxor byteswap countlz countrz extract lrotate lshift replace rrotate rshift",
    ),
    (
        "buffer",
        "copy create fill fromstring len readbits readf32 readf64 readi16 readi32 readi8 readstring readu16 \
         readu32 readu8 tostring writebits writef32 writef64 writei16 writei32 writei8 writestring writeu16 \
         writeu32 writeu8",
    ),
    (
        "coroutine",
        "close create isyieldable resume running status wrap yield",
    ),
    (
        "debug",
        "dumpcodesize dumpheap dumprefs getmemorycategory info loadmodule profilebegin profileend \
         resetmemorycategory setmemorycategory traceback",
    ),
    (
        "math",
        "abs acos asin atan atan2 ceil clamp cos cosh deg e exp floor fmod frexp huge isfinite isinf isnan ldexp \
         lerp log log10 map max min modf nan noise phi pi pow rad random randomseed round sign sin sinh sqrt sqrt2 \
         tan tanh tau",
    ),
    ("os", "clock date difftime time"),
    (
        "string",
        "byte char find format gmatch gsub len lower match pack packsize rep reverse split sub unpack upper",
    ),
    (
        "table",
        "clear clone concat create find foreach foreachi freeze getn insert isfrozen maxn move pack remove sort unpack",
    ),
    (
        "utf8",
        "char charpattern codepoint codes graphemes len nfcnormalize nfdnormalize offset",
    ),
    (
        "vector",
        "abs angle ceil clamp create cross dot floor lerp magnitude max min normalize one sign zero",
    ),
];

/// The globals that the engine provides.
pub struct Known {
    /// Globals and where they exist; none: on neither side, but the engine knows
    /// what to use instead.
    globals: BTreeMap<&'static str, Global>,
    /// Members of tables, and where they exist.
    members: BTreeMap<&'static str, BTreeMap<&'static str, Side>>,
    /// The permissions that `game.toml` must declare for a library.
    capabilities: BTreeMap<&'static str, &'static str>,
}

/// A global.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Global {
    /// It exists there.
    On(Side),
    /// It does not exist, and this is what to use.
    Absent(&'static str),
}

/// How the definition begins the description of what is not there.
const NOT_HERE: &str = "Not here:";

impl Known {
    /// Everything, made once.
    pub fn get() -> &'static Self {
        static KNOWN: OnceLock<Known> = OnceLock::new();
        KNOWN.get_or_init(|| Self::new(pages()))
    }

    fn new(pages: &'static [Page]) -> Self {
        let mut known = Self {
            globals: LUAU
                .iter()
                .map(|name| (*name, Global::On(Side::Both)))
                .collect(),
            members: BTreeMap::new(),
            capabilities: BTreeMap::new(),
        };
        for (library, names) in LUAU_MEMBERS {
            let names = names.split_whitespace().map(|name| (name, Side::Both));
            known.members.insert(library, names.collect());
        }
        for page in pages {
            known.add(page);
        }
        known
    }

    fn add(&mut self, page: &'static Page) {
        match page.kind {
            PageKind::Globals => {
                for member in &page.members {
                    let side = page.side_of(member);
                    // Callbacks are the script's own.
                    if member.kind == MemberKind::Callback {
                        continue;
                    }
                    let global = match member.about.strip_prefix(NOT_HERE) {
                        Some(advice) => Global::Absent(advice.trim()),
                        None => Global::On(side),
                    };
                    self.globals.insert(&member.name, global);
                }
            }
            PageKind::Library => self.table(page, |_| true),
            PageKind::Class => {
                if page.members.iter().any(|member| member.is_static) {
                    self.table(page, |is_static| is_static);
                }
            }
            PageKind::Record => {}
        }
    }

    fn table(&mut self, page: &'static Page, wanted: impl Fn(bool) -> bool) {
        let of_page = page
            .members
            .iter()
            .filter(|member| wanted(member.is_static));
        let of_page: Vec<(&'static str, Side)> = of_page
            .map(|member| (member.name.as_str(), page.side_of(member)))
            .collect();
        let names = std::iter::once(&page.name).chain(&page.aliases);
        for name in names {
            self.globals.insert(name, Global::On(page.side));
            let members = self.members.entry(name).or_default();
            members.extend(of_page.iter().copied());
            if let Some(capability) = &page.capability {
                self.capabilities.insert(name, capability);
            }
        }
    }

    /// A global, if the engine knows the name at all.
    pub fn global(&self, name: &str) -> Option<Global> {
        self.globals.get(name).copied()
    }

    /// The members of a table; none when they are not known.
    pub fn members(&self, table: &str) -> Option<&BTreeMap<&'static str, Side>> {
        self.members.get(table)
    }

    /// Whether a table is Luau's own: to ask it for nothing gives nil.
    pub fn is_luau(&self, table: &str) -> bool {
        LUAU_MEMBERS.iter().any(|(name, _)| *name == table)
    }

    /// The permission that `game.toml` must declare before a library can be
    /// used.
    pub fn capability(&self, library: &str) -> Option<&'static str> {
        self.capabilities.get(library).copied()
    }

    /// Globals that exist on this side.
    pub fn names(&self, side: Side) -> BTreeSet<&'static str> {
        let there = self.globals.iter().filter(|(_, global)| match global {
            Global::On(of) => of.includes(side),
            Global::Absent(_) => false,
        });
        there.map(|(name, _)| *name).collect()
    }
}

/// The name that was probably meant: one or two letters away, or the same but
/// for capitals.
pub fn closest<'n>(typed: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let near_max = if typed.chars().count() <= 4 { 1 } else { 2 };
    let distances = names.into_iter().map(|name| {
        let distance = match name.eq_ignore_ascii_case(typed) {
            true => 0,
            false => strsim::osa_distance(typed, name),
        };
        (distance, name)
    });
    let best = distances.min_by_key(|(distance, _)| *distance)?;
    (best.0 <= near_max).then_some(best.1)
}
