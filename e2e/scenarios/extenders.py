"""An extender over HTTP: it filters, scores and binds, and it is slow, talks nonsense and dies."""

import ssl

from harness.case import Case
from harness.extender import Extender, names
from harness.objects import condition, node, node_of, pod, priority_class
from harness.processes import wait


def only(*wanted):
    """A filter for extenders that keep their own cache: names in, names out."""
    def answer(request):
        passed = [name for name in names(request) if name in wanted]
        failed = {name: "the extender says no" for name in names(request) if name not in wanted}
        return {"NodeNames": passed, "FailedNodes": failed}

    return answer


class Extenders(Case):
    audit = True

    def setUp(self):
        super().setUp()
        self.create("nodes", *(node(name) for name in ("node-a", "node-b", "node-c")))

    def serve(self, port=0, **verbs):
        extender = Extender(port, **verbs)
        self.addCleanup(extender.die)
        return extender

    def start_with(self, extender, **fields):
        entry = {"urlPrefix": extender.url, "nodeCacheCapable": True, "httpTimeout": "300ms", **fields}
        return self.start_scheduler({"extenders": [entry], "podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1})

    def wait_error(self, name):
        """The attempt failed by no fault of the pod."""
        def failed():
            said = condition(self.pod(name), "PodScheduled")
            return said and said["reason"] == "SchedulerError" and said

        said = wait(f"{name} has met an error", failed, 10, say=lambda: self.why(name))
        self.assertEqual(self.wait_event(name, "FailedScheduling")["note"], said["message"])
        return said["message"]

    def test_it_filters_by_name(self):
        extender = self.serve(filter=only("node-b"))
        self.start_with(extender, filterVerb="filter")
        self.create("pods", pod("web"))
        self.assertEqual(self.wait_bound("web"), "node-b")
        request, = extender.asked("filter")
        self.assertEqual(request["Pod"]["metadata"]["name"], "web")
        self.assertEqual(sorted(request["NodeNames"]), ["node-a", "node-b", "node-c"])
        self.assertIsNone(request["Nodes"])

    def test_it_filters_whole_nodes(self):
        """One without a cache gets the nodes themselves, and gives back those that pass."""
        def answer(request):
            kept = [item for item in request["Nodes"]["items"] if item["metadata"]["name"] == "node-c"]
            return {"Nodes": {"metadata": {}, "items": kept}, "FailedNodes": {}}

        extender = self.serve(filter=answer)
        self.start_with(extender, filterVerb="filter", nodeCacheCapable=False)
        self.create("pods", pod("web"))
        self.assertEqual(self.wait_bound("web"), "node-c")
        request, = extender.asked("filter")
        self.assertIsNone(request["NodeNames"])
        item = request["Nodes"]["items"][0]
        self.assertEqual(item["status"]["allocatable"]["cpu"], "4")

    def test_its_reasons_are_told(self):
        extender = self.serve(filter=only())
        self.start_with(extender, filterVerb="filter")
        self.create("pods", pod("web"))
        self.wait_unschedulable(
            "web", "0/3 nodes are available: 3 the extender says no. no new claims to deallocate, "
            "preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.",
        )
        extender.verbs["filter"] = only("node-a")
        # What an extender refused may change with anything in the cluster.
        self.api.patch("nodes", "node-a", {"metadata": {"labels": {"touched": "yes"}}})
        self.assertEqual(self.wait_bound("web"), "node-a")

    def test_it_scores(self):
        """Ten of ten, by a weight that outweighs all plugins."""
        def answer(request):
            return [{"Host": name, "Score": 10 if name == "node-c" else 0} for name in names(request)]

        extender = self.serve(prioritize=answer)
        self.start_with(extender, prioritizeVerb="prioritize", weight=100)
        self.create("pods", pod("resident", cpu="3", memory="8Gi", nodeName="node-c"))
        for number in range(3):
            self.create("pods", pod(f"web-{number}", cpu="100m"))
            self.assertEqual(self.wait_bound(f"web-{number}"), "node-c")

    def test_scores_in_old_casing(self):
        """Extenders from before 1.17 answer in lower case."""
        def answer(request):
            return [{"host": name, "score": 10 if name == "node-b" else 0} for name in names(request)]

        extender = self.serve(prioritize=answer, filter=lambda request: {"nodenames": ["node-a", "node-b"], "failedNodes": {}})
        self.start_with(extender, filterVerb="filter", prioritizeVerb="prioritize", weight=100)
        self.create("pods", pod("web"))
        self.assertEqual(self.wait_bound("web"), "node-b")

    def test_scores_that_fail_are_done_without(self):
        extender = self.serve(prioritize=lambda _: 500)
        self.start_with(extender, prioritizeVerb="prioritize", weight=100)
        self.create("pods", pod("web"))
        self.wait_bound("web")
        self.assertTrue(extender.asked("prioritize"))

    def test_it_binds(self):
        """The extender itself sends the binding; the scheduler sends none, but tells of it."""
        def answer(request):
            self.api.bind(request["PodName"], request["Node"], request["PodNamespace"])
            return {"Error": ""}

        extender = self.serve(bind=answer)
        self.start_with(extender, bindVerb="bind")
        made, = self.create("pods", pod("web"))
        where = self.wait_bound("web")
        self.wait_event("web", "Scheduled", f"Successfully assigned default/web to {where}")
        request, = extender.asked("bind")
        self.assertEqual(request["PodUID"], made["metadata"]["uid"])
        bindings = self.cluster.audited("scheduler", verb="create", subresource="binding", name="web")
        self.assertEqual(bindings, [])

    def test_it_has_a_say_in_preemption(self):
        """Two nodes could be made free. It is shown the victims, by their UIDs, and leaves one of the nodes."""
        self.create("priorityclasses", priority_class("low", 1), priority_class("high", 2))
        residents = {f"node-{letter}": f"resident-{letter}" for letter in "abc"}
        made = self.create("pods", *(
            pod(name, cpu="4", priority_class="low" if where != "node-c" else "high", nodeName=where)
            for where, name in residents.items()
        ))
        uids = {item["metadata"]["name"]: item["metadata"]["uid"] for item in made}

        def answer(request):
            return {"NodeNameToMetaVictims": {"node-b": request["NodeNameToMetaVictims"]["node-b"]}}

        extender = self.serve(preempt=answer)
        self.start_with(extender, preemptVerb="preempt")
        self.create("pods", pod("urgent", cpu="4", priority_class="high"))
        wait("the resident of node-b is asked to go", lambda: self.pod("resident-b")["metadata"].get("deletionTimestamp"))
        request = extender.asked("preempt")[0]
        shown = request["NodeNameToMetaVictims"]
        self.assertEqual(sorted(shown), ["node-a", "node-b"])
        self.assertEqual([victim["UID"] for victim in shown["node-a"]["Pods"]], [uids["resident-a"]])
        self.assertIsNone(self.pod("resident-a")["metadata"].get("deletionTimestamp"))
        self.api.delete("pods", "resident-b")
        self.assertEqual(self.wait_bound("urgent"), "node-b")

    def test_it_is_served_over_https(self):
        certificates = self.cluster.authority.parent
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "apiserver.crt", certificates / "apiserver.key")
        extender = self.serve(context=context, filter=only("node-b"))
        self.start_with(extender, filterVerb="filter", enableHTTPS=True, tlsConfig={"caFile": str(self.cluster.authority)})
        self.create("pods", pod("web"))
        self.assertEqual(self.wait_bound("web"), "node-b")

    def test_a_binding_that_it_refuses_is_tried_again(self):
        answers = [{"Error": "not now"}]

        def answer(request):
            if answers:
                return answers.pop()
            self.api.bind(request["PodName"], request["Node"], request["PodNamespace"])
            return {}

        extender = self.serve(bind=answer)
        self.start_with(extender, bindVerb="bind")
        self.create("pods", pod("web-again"))
        self.assertIn("not now", self.wait_error("web-again"))
        self.wait_bound("web-again")

    def test_only_pods_that_concern_it(self):
        """With managed resources, the others never come to it."""
        extender = self.serve(filter=only("node-b"))
        self.start_with(extender, filterVerb="filter", managedResources=[{"name": "example.com/gpu", "ignoredByScheduler": True}])
        self.create("pods", pod("with", requests={"example.com/gpu": "1"}), pod("without"))
        # No node has such a resource; it is the extender that counts it.
        self.assertEqual(self.wait_bound("with"), "node-b")
        self.wait_bound("without")
        self.assertEqual([request["Pod"]["metadata"]["name"] for request in extender.asked("filter")], ["with"])

    def test_one_that_is_slow(self):
        """It is given its time, no more. When it is quick again, the pod is bound."""
        def slow(request):
            extender.release.wait(10)
            return only("node-a")(request)

        extender = self.serve(filter=slow)
        self.start_with(extender, filterVerb="filter")
        self.create("pods", pod("web"))
        self.assertIn(f"{extender.url}/filter", self.wait_error("web"))
        extender.verbs["filter"] = only("node-a")
        self.assertEqual(self.wait_bound("web"), "node-a")

    def test_one_that_talks_nonsense(self):
        """No JSON, a code that is no success, a node that was not asked about: each an error, none the end."""
        nonsense = {
            "no-json": lambda _: "{]",
            "no-success": lambda _: 500,
            "no-such-node": lambda _: {"NodeNames": ["node-z"]},
            "its-own-error": lambda _: {"Error": "out of order"},
        }
        extender = self.serve(filter=lambda request: nonsense[request["Pod"]["metadata"]["name"]](request))
        self.start_with(extender, filterVerb="filter")
        self.create("pods", *(pod(name) for name in nonsense))
        for name in nonsense:
            message = self.wait_error(name)
            if name == "its-own-error":
                self.assertIn("out of order", message)
        extender.verbs["filter"] = only("node-a")
        for name in nonsense:
            self.assertEqual(self.wait_bound(name), "node-a")

    def test_one_that_dies(self):
        extender = self.serve(filter=only("node-a"))
        self.start_with(extender, filterVerb="filter")
        self.create("pods", pod("before"))
        self.assertEqual(self.wait_bound("before"), "node-a")
        extender.die()
        self.create("pods", pod("while"))
        self.wait_error("while")
        self.assertIsNone(node_of(self.pod("while")))
        self.serve(extender.port, filter=only("node-c"))
        self.assertEqual(self.wait_bound("while"), "node-c")

    def test_one_that_can_be_done_without(self):
        """An ignorable one that is dead, slow or mad stands in nobody's way."""
        def slow(_):
            extender.release.wait(10)
            return {}

        extender = self.serve(filter=slow)
        self.start_with(extender, filterVerb="filter", ignorable=True)
        self.create("pods", pod("slow"))
        self.wait_bound("slow")
        extender.verbs["filter"] = lambda _: "nonsense"
        self.create("pods", pod("mad"))
        self.wait_bound("mad")
        extender.die()
        self.create("pods", pod("dead"))
        self.wait_bound("dead")
