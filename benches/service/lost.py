"""Counts the acknowledged fingerprints that a service loses.

- `lost.py store URL PID SEED FILE`: four clients store fingerprints that depend on SEED. After three seconds, process PID is killed
  (SIGKILL). Writes the fingerprints that were acknowledged as stored to FILE.
- `lost.py count URL FILE`: asks a service for these fingerprints, and prints how many there are, and how many are missing. Exit code 1
  if some are missing, 2 if none were acknowledged.
"""

import http.client
import json
import os
import signal
import sys
import threading
import time
import urllib.parse


def post(connection, path, body):
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    response = connection.getresponse()
    answer = response.read()
    if response.status not in (200, 201):
        # A service without its database, after the kill.
        raise ConnectionError(answer)
    return json.loads(answer)


def store(host, path, first, acknowledged):
    connection = http.client.HTTPConnection(host)
    number = first
    try:
        while True:
            # An odd factor: each number has a fingerprint of its own.
            fingerprint = f"{(number * 0x9E3779B97F4A7C15 + 1) % 2**64:016x}"
            if post(connection, path, {"fingerprint": fingerprint})["result"] == "stored":
                acknowledged.append(fingerprint)
            number += 4
    except (OSError, http.client.HTTPException):
        pass


def main(kind, url, *arguments):
    parts = urllib.parse.urlsplit(url)
    if kind == "store":
        process, seed, file = arguments
        lists = [[] for _ in range(4)]
        path = f"{parts.path}?{parts.query}"
        threads = [threading.Thread(target=store, args=(parts.netloc, path, (int(seed) << 32) + first, lists[first])) for first in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(3)
        if not all(thread.is_alive() for thread in threads):
            sys.exit("a client has failed before the kill")
        os.kill(int(process), signal.SIGKILL)
        for thread in threads:
            thread.join()
        with open(file, "w") as lines:
            json.dump(sum(lists, []), lines)
    else:
        with open(arguments[0]) as lines:
            acknowledged = json.load(lines)
        connection, missing = http.client.HTTPConnection(parts.netloc), 0
        for start in range(0, len(acknowledged), 500):
            asked = acknowledged[start : start + 500]
            answers = post(connection, parts.path, [{"fingerprint": fingerprint} for fingerprint in asked])
            found = [{match["fingerprint"] for match in answer["matches"]} for answer in answers]
            missing += sum(fingerprint not in near for fingerprint, near in zip(asked, found))
        print(f"{len(acknowledged)} acknowledged, {missing} lost")
        sys.exit(2 if not acknowledged else missing > 0)


main(*sys.argv[1:])
