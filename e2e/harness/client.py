"""A small JSON client of the Kubernetes API: the standard library, a token, one connection a thread."""

import http.client
import json
import socket
import ssl
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

WORKERS = 12
PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}
# Where the kinds live; a namespace is put in where there is one.
PATHS = {
    "nodes": "/api/v1/nodes",
    "namespaces": "/api/v1/namespaces",
    "secrets": "/api/v1/namespaces/{}/secrets",
    "serviceaccounts": "/api/v1/namespaces/{}/serviceaccounts",
    "pods": "/api/v1/namespaces/{}/pods",
    "persistentvolumes": "/api/v1/persistentvolumes",
    "persistentvolumeclaims": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "events": "/apis/events.k8s.io/v1/namespaces/{}/events",
    "storageclasses": "/apis/storage.k8s.io/v1/storageclasses",
    "deployments": "/apis/apps/v1/namespaces/{}/deployments",
    "priorityclasses": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "poddisruptionbudgets": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "replicasets": "/apis/apps/v1/namespaces/{}/replicasets",
    "daemonsets": "/apis/apps/v1/namespaces/{}/daemonsets",
    "configmaps": "/api/v1/namespaces/{}/configmaps",
    "leases": "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
    "roles": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "rolebindings": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "clusterroles": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "clusterrolebindings": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "gangs": "/apis/example.com/v1/namespaces/{}/gangs",
    "podgroups": "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{}/podgroups",
    "appgroups": "/apis/appgroup.diktyo.x-k8s.io/v1alpha1/namespaces/{}/appgroups",
    "networktopologies": "/apis/networktopology.diktyo.x-k8s.io/v1alpha1/namespaces/{}/networktopologies",
    "elasticquotas": "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{}/elasticquotas",
    "seccompprofiles": "/apis/security-profiles-operator.x-k8s.io/v1beta1/namespaces/{}/seccompprofiles",
    "services": "/api/v1/namespaces/{}/services",
    "apiservices": "/apis/apiregistration.k8s.io/v1/apiservices",
    "customresourcedefinitions": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
}


class ApiError(Exception):
    def __init__(self, code, method, path, text):
        super().__init__(f"{method} {path}: {code}: {text}")
        self.code = code


class Client:
    def __init__(self, port, token=None, authority=None, certificate=None):
        """`certificate` is a pair of files: the client's certificate, and its key."""
        self.port = port
        self.token = token
        self.context = ssl.create_default_context(cafile=authority)
        if certificate:
            self.context.load_cert_chain(*certificate)
        if authority is None:
            self.context.check_hostname = False
            self.context.verify_mode = ssl.CERT_NONE
        self.local = threading.local()

    def connect(self, timeout=30):
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=timeout)
        connection.connect()
        # Small requests follow each other on one connection: none may wait for more.
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def headers(self, content_type="application/json"):
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return headers

    def raw(self, method, path, body=None, content_type="application/json"):
        """Code and text of the answer. A connection that went stale is made anew, once."""
        data = None if body is None else json.dumps(body)
        for last in (False, True):
            connection = getattr(self.local, "connection", None)
            try:
                if connection is None:
                    connection = self.local.connection = self.connect()
                connection.request(method, path, data, self.headers(content_type))
                answer = connection.getresponse()
                return answer.status, answer.read().decode()
            except (OSError, http.client.HTTPException):
                if connection is not None:
                    connection.close()
                self.local.connection = None
                if last:
                    raise

    def call(self, method, path, body=None, content_type="application/json"):
        code, text = self.raw(method, path, body, content_type)
        if code >= 300:
            raise ApiError(code, method, path, text)
        return json.loads(text)

    def get(self, kind, name, namespace="default"):
        """The object, or None."""
        try:
            return self.call("GET", f"{path(kind, namespace)}/{name}")
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def list(self, kind, namespace="default", **query):
        query = "?" + urllib.parse.urlencode(query) if query else ""
        return self.call("GET", path(kind, namespace) + query)["items"]

    def create(self, kind, *objects, namespace="default"):
        """Creates them, many at a time, and gives what the server made of them."""
        def one(item):
            return self.call("POST", path(kind, item["metadata"].get("namespace", namespace)), item)

        return self.parallel(one, objects)

    def patch(self, kind, name, body, namespace="default", how="merge", subresource=""):
        subresource = f"/{subresource}" if subresource else ""
        return self.call("PATCH", f"{path(kind, namespace)}/{name}{subresource}", body, PATCHES[how])

    def delete(self, kind, *names, namespace="default", grace=0):
        """Deletes them, by default at once; it is no error if one is gone."""
        def one(name):
            try:
                return self.call("DELETE", f"{path(kind, namespace)}/{name}?gracePeriodSeconds={grace}")
            except ApiError as error:
                if error.code != 404:
                    raise

        return self.parallel(one, names)

    def delete_all(self, kind, namespace="default"):
        self.call("DELETE", f"{path(kind, namespace)}?gracePeriodSeconds=0")

    def bind(self, pod, node, namespace="default"):
        """Binds as a scheduler does."""
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node}}
        return self.call("POST", f"{path('pods', namespace)}/{pod}/binding", body)

    def parallel(self, action, items):
        items = list(items)
        if len(items) <= 1:
            return [action(item) for item in items]
        with ThreadPoolExecutor(WORKERS) as pool:
            return list(pool.map(action, items))


class Watch:
    """The objects of a kind as the server tells of them, followed by a thread that survives a restart of the server. `seen`
    has every version, with the time it came, and `tell` is called with each. `objects` has the present ones by name; those of all namespaces
    (None) by namespace and name."""

    def __init__(self, client, kind, namespace="default", tell=None):
        self.client = client
        self.path = path(kind, namespace)
        self.everywhere = namespace is None
        self.tell = tell
        self.objects = {}
        self.seen = []
        self.condition = threading.Condition()
        self.stopped = False
        self.synced = False
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()
        with self.condition:
            if not self.condition.wait_for(lambda: self.synced, 20):
                raise AssertionError(f"cannot watch {self.path}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.stopped = True
        try:
            self.connection.sock.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError):
            pass
        self.thread.join(5)

    def follow(self):
        while not self.stopped:
            try:
                self.follow_once()
            except (OSError, ValueError, AttributeError, http.client.HTTPException, ApiError):
                time.sleep(0.05)

    def follow_once(self):
        self.connection = self.client.connect()
        self.connection.request("GET", self.path, headers=self.client.headers())
        answer = self.connection.getresponse()
        content = json.loads(answer.read())
        if answer.status != 200:
            return
        version = content["metadata"]["resourceVersion"]
        with self.condition:
            present = {self.key(item): item for item in content["items"]}
            for name in set(self.objects) - set(present):
                self.note("DELETED", self.objects[name])
            for item in present.values():
                self.note("LISTED", item)
            self.synced = True
            self.condition.notify_all()
        self.connection.request("GET", f"{self.path}?watch=true&resourceVersion={version}",
                                headers=self.client.headers())
        answer = self.connection.getresponse()
        self.connection.sock.settimeout(None)
        while line := answer.readline():
            event = json.loads(line)
            if event["type"] == "ERROR":
                return
            with self.condition:
                self.note(event["type"], event["object"])
                self.condition.notify_all()

    def key(self, item):
        metadata = item["metadata"]
        return (metadata.get("namespace"), metadata["name"]) if self.everywhere else metadata["name"]

    def note(self, kind, item):
        if kind == "DELETED":
            self.objects.pop(self.key(item), None)
        else:
            self.objects[self.key(item)] = item
        self.seen.append((time.monotonic(), kind, item))
        if self.tell:
            self.tell(kind, item)

    def wait(self, what, condition, seconds=10, say=None):
        """What the condition gives for the objects as soon as that is true; it is asked at every change."""
        with self.condition:
            value = self.condition.wait_for(lambda: condition(self.objects), seconds)
            if not value:
                more = f": {say(self.objects)}" if say else ""
                raise AssertionError(f"not within {seconds} s: {what}{more}")
            return value

    def when(self, name, condition):
        """The time of the first version of an object for which the condition is true."""
        with self.condition:
            for moment, _, item in self.seen:
                if item["metadata"]["name"] == name and condition(item):
                    return moment
        return None


def path(kind, namespace):
    """Where the objects of a kind are, in one namespace or, for None, in all."""
    everywhere = PATHS[kind].replace("/namespaces/{}", "")
    return everywhere if namespace is None else PATHS[kind].format(namespace)
