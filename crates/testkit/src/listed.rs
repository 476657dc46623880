//! Whether a plugin lists all the points that it implements.

use std::marker::PhantomData;

use supercargo_framework::{
    Bind, Enqueue, Filter, Observe, Page, Permit, Plugin, Point, PostBind, PostFilter, PreBind, PreEnqueue,
    PreFilter, PreScore, QueueSort, Reserve, Score,
};

use crate::trial::registry_of;

/// Fails unless a plugin lists every point in its `extensions` whose trait it implements: what is not listed is never called,
/// and the compiler cannot know that it should be.
///
/// ```
/// # use supercargo_framework::{Cycle, Extensions, Filter, NoArgs, Plugin, Status};
/// # use supercargo_model::NodeRef;
/// # struct Mine;
/// # impl Plugin for Mine {
/// #     const NAME: &'static str = "Mine";
/// #     type Args = NoArgs;
/// #     fn new(_: NoArgs) -> Self { Mine }
/// #     fn extensions(points: Extensions<Self>) -> Extensions<Self> { points.filter() }
/// # }
/// # impl Filter for Mine {
/// #     fn filter(&self, _: &Cycle<'_>, _: NodeRef<'_>) -> Status { Status::success() }
/// # }
/// supercargo_testkit::check_points!(Mine);
/// ```
#[macro_export]
macro_rules! check_points {
    ($plugin:ty) => {{
        let unlisted = $crate::unlisted_points!($plugin);
        assert!(
            unlisted.is_empty(),
            "{} implements these and does not list them in its `extensions`: {}",
            <$plugin as $crate::listed::Named>::NAME,
            unlisted.join(", ")
        );
    }};
}

/// The points that a plugin implements and does not list, as `.filter()`.
#[macro_export]
macro_rules! unlisted_points {
    ($plugin:ty) => {{
        #[allow(unused_imports, reason = "a plugin that implements everything needs no other answer")]
        use $crate::listed::Lacks as _;
        type Probe = $crate::listed::Probe<$plugin>;
        $crate::listed::unlisted::<$plugin>(&[
            Probe::PRE_ENQUEUE,
            Probe::QUEUE_SORT,
            Probe::PRE_FILTER,
            Probe::FILTER,
            Probe::POST_FILTER,
            Probe::PRE_SCORE,
            Probe::SCORE,
            Probe::RESERVE,
            Probe::PERMIT,
            Probe::PRE_BIND,
            Probe::BIND,
            Probe::POST_BIND,
            Probe::ENQUEUE,
            Probe::OBSERVE,
            Probe::PAGE,
        ])
    }};
}

/// Says of a type which traits it implements: where it implements one, the constant of that name is the probe's own, which goes
/// before the one of [`Lacks`].
#[derive(Debug)]
pub struct Probe<P>(PhantomData<P>);

/// How a point is listed.
#[derive(Clone, Copy, Debug)]
pub enum Listing {
    Point(Point, &'static str),
    Enqueue,
    Observe,
    Page,
}

/// The name of a plugin, for a macro.
pub trait Named {
    const NAME: &'static str;
}

impl<P: Plugin> Named for P {
    const NAME: &'static str = <P as Plugin>::NAME;
}

macro_rules! probes {
    ($($constant:ident: $point:ident = $listing:expr;)*) => {
        /// What a type implements that has no constant of its own: nothing.
        pub trait Lacks {
            $(const $constant: Option<Listing> = None;)*
        }

        impl<P> Lacks for Probe<P> {}

        $(
            impl<P: $point> Probe<P> {
                /// How the point is listed.
                pub const $constant: Option<Listing> = Some($listing);
            }
        )*
    };
}

probes! {
    PRE_ENQUEUE: PreEnqueue = Listing::Point(Point::PreEnqueue, ".pre_enqueue()");
    QUEUE_SORT: QueueSort = Listing::Point(Point::QueueSort, ".queue_sort()");
    PRE_FILTER: PreFilter = Listing::Point(Point::PreFilter, ".pre_filter()");
    FILTER: Filter = Listing::Point(Point::Filter, ".filter()");
    POST_FILTER: PostFilter = Listing::Point(Point::PostFilter, ".post_filter()");
    PRE_SCORE: PreScore = Listing::Point(Point::PreScore, ".pre_score()");
    SCORE: Score = Listing::Point(Point::Score, ".score()");
    RESERVE: Reserve = Listing::Point(Point::Reserve, ".reserve()");
    PERMIT: Permit = Listing::Point(Point::Permit, ".permit()");
    PRE_BIND: PreBind = Listing::Point(Point::PreBind, ".pre_bind()");
    BIND: Bind = Listing::Point(Point::Bind, ".bind()");
    POST_BIND: PostBind = Listing::Point(Point::PostBind, ".post_bind()");
    ENQUEUE: Enqueue = Listing::Enqueue;
    OBSERVE: Observe = Listing::Observe;
    PAGE: Page = Listing::Page;
}

/// Those of the points that the plugin does not list.
pub fn unlisted<P: Plugin>(implemented: &[Option<Listing>]) -> Vec<&'static str> {
    let registry = registry_of::<P>();
    let plugin = registry.get(P::NAME).expect("it was registered");
    let missing = |listing: &Listing| match listing {
        Listing::Point(point, method) => (!plugin.points().contains(point)).then_some(*method),
        Listing::Enqueue => (!plugin.reacts()).then_some(".enqueue()"),
        Listing::Observe => (!plugin.observes()).then_some(".observe()"),
        Listing::Page => (!plugin.has_page()).then_some(".page()"),
    };
    implemented.iter().flatten().filter_map(missing).collect()
}
