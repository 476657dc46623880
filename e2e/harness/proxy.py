"""A wire between a scheduler and kube-apiserver that a test can cut, or make silent."""

import socket
import threading


class Proxy:
    def __init__(self, target):
        self.target = target
        self.lock = threading.Lock()
        self.whole = True
        self.closed = False
        self.sockets = set()
        self.silent = set()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def cut(self):
        """Ends all connections; whoever comes now is sent away."""
        with self.lock:
            self.whole = False
            for end in self.sockets:
                hang_up(end)

    def silence(self):
        """The connections that there are carry nothing any more, in neither direction, and stay open: what is sent is acknowledged by
        the kernel and thrown away. New connections are carried as before."""
        with self.lock:
            self.silent |= self.sockets

    def mend(self):
        with self.lock:
            self.whole = True

    def close(self):
        self.closed = True
        self.cut()
        hang_up(self.listener)
        self.listener.close()

    def accept(self):
        while not self.closed:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target), 5)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            with self.lock:
                if not self.whole:
                    near.close()
                    far.close()
                    continue
                self.sockets |= {near, far}
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self.pump, args=(source, sink), daemon=True).start()

    def pump(self, source, sink):
        try:
            while data := source.recv(65536):
                if source not in self.silent:
                    sink.sendall(data)
        except OSError:
            pass
        if source in self.silent and not self.closed:
            return  # Not even the end of one side is told to the other.
        hang_up(source)
        hang_up(sink)
        with self.lock:
            self.sockets.discard(source)


def hang_up(end):
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
