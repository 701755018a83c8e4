//! Facts about the fields of components that Rust types do not state.

/// Facts about a field of a component that its type does not state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field {
    /// The name in scene.json.
    pub name: &'static str,
    /// The lowest and the highest value of each of its numbers.
    pub range: Option<(f32, f32)>,
    /// The unit of its numbers, such as `m` or `degrees`.
    pub unit: Option<&'static str>,
    /// What an editor shows for it, such as `color` or `asset(glb)`; decided by the type when
    /// left out.
    pub widget: Option<&'static str>,
}

impl Field {
    /// A field whose type says everything.
    pub(crate) const fn any() -> Self {
        Field {
            name: "",
            range: None,
            unit: None,
            widget: None,
        }
    }

    /// A field of numbers between two bounds, both allowed.
    pub(crate) const fn range(min: f32, max: f32) -> Self {
        Field {
            range: Some((min, max)),
            ..Field::any()
        }
    }

    pub(crate) const fn unit(self, unit: &'static str) -> Self {
        Field {
            unit: Some(unit),
            ..self
        }
    }

    pub(crate) const fn widget(self, widget: &'static str) -> Self {
        Field {
            widget: Some(widget),
            ..self
        }
    }

    pub(crate) const fn named(self, name: &'static str) -> Self {
        Field { name, ..self }
    }
}

/// The numbers in the value of a field; none unless the type says otherwise.
pub(crate) trait Numbers {
    fn each(&self, _visit: &mut dyn FnMut(f32)) {}
}

impl Numbers for String {}

impl Numbers for u32 {}

impl Numbers for f32 {
    fn each(&self, visit: &mut dyn FnMut(f32)) {
        visit(*self);
    }
}

impl Numbers for u8 {
    fn each(&self, visit: &mut dyn FnMut(f32)) {
        visit(f32::from(*self));
    }
}

impl<const N: usize> Numbers for [f32; N] {
    fn each(&self, visit: &mut dyn FnMut(f32)) {
        self.iter().copied().for_each(visit);
    }
}

impl<T: Numbers> Numbers for Option<T> {
    fn each(&self, visit: &mut dyn FnMut(f32)) {
        if let Some(value) = self {
            value.each(visit);
        }
    }
}
