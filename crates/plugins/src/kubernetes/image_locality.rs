//! ImageLocality: nodes that have a pod's images already.

use supercargo_framework::{
    ColumnView, Cycle, Extensions, MAX_NODE_SCORE, NoArgs, NodeField, Normalization, Plugin, PodField, Reads,
    RowScore, Score, Status,
};
use supercargo_model::cluster::ImageState;
use supercargo_model::pod::VolumeSource;
use supercargo_model::{NodeRef, PodSpec};

const MEBIBYTE: i64 = 1024 * 1024;
/// Images smaller than this, all together, are not worth going anywhere for.
const MIN_THRESHOLD: i64 = 23 * MEBIBYTE;
/// Beyond this much a container, more makes no difference.
const MAX_CONTAINER_THRESHOLD: i64 = 1000 * MEBIBYTE;

/// # What
/// Prefers nodes that have the pod's images already, by size. An image counts less the fewer nodes have it, so that
/// one node does not attract all pods of a new image.
///
/// # Why
/// Pulling a large image takes time.
///
/// # Arguments
/// None.
///
/// # Example
/// 500 MiB on two of four nodes, one container: those two score 23, the others 0.
///
/// # Difference from upstream
/// None in a verdict. In a live cluster upstream may count the nodes that have an image from a stale copy
/// (spec §10, item 6); the count here is always current.
#[derive(Debug)]
pub struct ImageLocality;

impl Plugin for ImageLocality {
    const NAME: &'static str = "ImageLocality";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        ImageLocality
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.score()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::Images]).node(&[NodeField::Images]).all_nodes()
    }
}

impl Score for ImageLocality {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let spec = &cycle.pod.spec;
        let node_count = cycle.cluster().node_count();
        let present = image_names(spec).filter_map(|name| node.image(name));
        let sum = present.map(|image| scaled_size(image, node_count)).fold(0, i64::wrapping_add);
        Ok(score(sum, spec.init_containers.len() + spec.containers.len()))
    }

    fn normalization(&self) -> Normalization {
        Normalization::None
    }

    fn score_rows(&self, cycle: &Cycle<'_>, _: ColumnView<'_>, scores: &mut [i32]) -> bool {
        let score = score_everywhere(cycle);
        scores.fill(score.unwrap_or(0));
        score.is_some()
    }

    fn score_row(&self, cycle: &Cycle<'_>) -> Option<RowScore> {
        score_everywhere(cycle).map(|score| -> RowScore { Box::new(move |_| score) })
    }
}

/// The score of all nodes, if none of them has an image of the pod's: what no node has is worth the same everywhere.
fn score_everywhere(cycle: &Cycle<'_>) -> Option<i32> {
    let (spec, cluster) = (&cycle.pod.spec, cycle.cluster());
    let is_known = image_names(spec).any(|name| cluster.knows_image(name));
    (!is_known).then(|| score(0, spec.init_containers.len() + spec.containers.len()) as i32)
}

/// The images that the pod needs, each as often as it is named.
fn image_names(spec: &PodSpec) -> impl Iterator<Item = &str> {
    let containers = spec.init_containers.iter().chain(&spec.containers).map(|container| &*container.image);
    let volumes = spec.volumes.iter().filter_map(|volume| match &volume.source {
        VolumeSource::Image(reference) => Some(&**reference),
        _ => None,
    });
    containers.chain(volumes)
}

fn scaled_size(image: ImageState, node_count: usize) -> i64 {
    let spread = f64::from(image.node_count) / node_count as f64;
    let scaled = image.size as f64 * spread;
    // What does not fit becomes the smallest number, as upstream's conversion makes it on amd64.
    if (-(2_f64.powi(63))..2_f64.powi(63)).contains(&scaled) { scaled as i64 } else { i64::MIN }
}

fn score(sum: i64, container_count: usize) -> i64 {
    let maximum = MAX_CONTAINER_THRESHOLD.wrapping_mul(container_count as i64);
    // Not `clamp`: a pod without containers has a maximum below the minimum.
    let sum = if sum < MIN_THRESHOLD { MIN_THRESHOLD } else { sum.min(maximum) };
    MAX_NODE_SCORE * (sum - MIN_THRESHOLD) / (maximum - MIN_THRESHOLD)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use supercargo_testkit::{cluster, node, pod, trial};

    use super::*;

    #[test]
    fn nodes_that_have_large_images_score_higher() {
        let mut cluster = cluster()
            .with(node("a").image("app:1", 500 * MEBIBYTE))
            .with(node("b").image("app:1", 500 * MEBIBYTE).image("plain:latest", 1000 * MEBIBYTE))
            .with(node("c").image("small:1", 40 * MEBIBYTE))
            .with(node("d"));
        let plugin = trial::<ImageLocality>();
        let app = |name: &str| pod("p").image(name);
        let also = json!({ "spec": { "initContainers": [{ "name": "init", "image": "absent" }] } });
        let volume = json!({ "spec": { "volumes": [{ "name": "v", "image": { "reference": "app:1" } }] } });
        for (what, pod, scores) in [
            ("on two of four", app("app:1"), [23, 23, 0, 0]),
            ("one of two containers", app("app:1").with(also), [11, 11, 0, 0]),
            ("not worth it", app("small:1"), [0, 0, 0, 0]),
            ("the tag goes without saying", app("plain"), [0, 23, 0, 0]),
            ("unknown", app("absent"), [0, 0, 0, 0]),
            ("a volume counts, but is no container", app("app:1").with(volume), [48, 48, 0, 0]),
        ] {
            let expected: Vec<String> = ["a", "b", "c", "d"]
                .iter()
                .zip(scores)
                .map(|(name, score)| format!("{name}: {score}"))
                .collect();
            assert_eq!(plugin.scores(&mut cluster, pod), expected, "{what}");
        }
    }

    #[test]
    fn vectors() {
        let spread_over_half = ImageState { size: 500 * MEBIBYTE, node_count: 2 };
        assert_eq!(score(scaled_size(spread_over_half, 4), 1), 23);
        assert_eq!(score(scaled_size(spread_over_half, 4), 2), 11);
        let small = ImageState { size: 40 * MEBIBYTE, node_count: 1 };
        assert_eq!(score(scaled_size(small, 4), 1), 0);
        assert_eq!(score(0, 0), 0, "no containers, no division by zero");
        assert_eq!(score(i64::MAX, 3), 100);
        let endless = ImageState { size: i64::MAX, node_count: 1 };
        assert_eq!(score(scaled_size(endless, 1), 1), 0, "too large to be converted");
        assert_eq!(score(scaled_size(endless, 2), 1), 100, "on half of the nodes it is not");
    }
}
