"""The steps of Tests/docs that are written in Python.

  site.py products                 prints the targets of the products, from the output of `swift package dump-package`
  site.py comments FOLDER          fails if a public symbol in the symbol graphs has no comment
  site.py finish SITE BASE_PATH    adds the front page and the linked files of this repository, and fails if a link is broken
"""
import json
import os
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The front page lists all modules, in these groups.
GROUPS = {
    "Queue": ["TransferKit", "TransferControl", "TransferWeb", "TransferFleet"],
    "Transports": ["TransportTUS", "TransportHTTP", "TransportSFTP", "HTTPSupport", "CurlEngine"],
    "Command": ["transferq", "transferq_web", "transferq_fleet", "TransferCommands"],
    "Transports of other packages": ["TransferCore", "TransportSupport", "TransportTesting"],
    "Tests with a tus server": ["TUSLoopback", "tus_loopback"],
}
# The front page begins with these articles.
START = ["TransferKit/GettingStarted", "TransferKit/QueueSemantics", "transferq/OperatingTransferq", "transferq/Troubleshooting",
         "TransferKit/WritingATransport", "TransferKit/FrequentlyAskedQuestions"]
INTRODUCTION = "TransferKit is a durable file-transfer queue for Swift on Linux. It sends and receives ordered groups of files over tus, plain \
HTTP and SFTP, and continues after crashes, reboots and network loss."


def fail(problems):
    for problem in sorted(problems):
        print(problem, file=sys.stderr)
    if problems:
        sys.exit(1)


def products():
    for product in json.load(sys.stdin)["products"]:
        print(*product["targets"], sep="\n")


def comments(folder):
    problems, count = set(), 0
    for path in sorted(pathlib.Path(folder).glob("*/*/*.symbols.json")):
        graph = json.loads(path.read_text(encoding="utf-8"))
        for symbol in graph["symbols"]:
            is_declared = symbol["accessLevel"] in ("public", "open") and symbol["kind"]["identifier"] != "swift.extension"
            # A synthesized member of a type is a declaration of another module, for example of a protocol in the standard library.
            if not is_declared or "::SYNTHESIZED::" in symbol["identifier"]["precise"]:
                continue
            count += 1
            if not symbol.get("docComment", {}).get("lines"):
                problems.add(f"{graph['module']['name']}: {'.'.join(symbol['pathComponents'])} has no comment.")
    if not count:
        problems.add(f"{folder} contains no symbols.")
    print(f"{count - len(problems)} of {count} public symbols have a comment.")
    fail(problems)


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def catalogs():
    """The folders of the articles, by the name of the module in addresses."""
    folders = [*ROOT.glob("Sources/*/*.docc"), *ROOT.glob("Plugins/*/*/*.docc")]
    return {folder.parent.name.lower(): folder for folder in folders}


def anchors(value):
    """The anchors of all headings in a page's data."""
    if isinstance(value, dict):
        if "anchor" in value:
            yield value["anchor"].lower()
        for child in value.values():
            yield from anchors(child)
    elif isinstance(value, list):
        for child in value:
            yield from anchors(child)


def finish(site, base):
    site, base = pathlib.Path(site), "/" + base.strip("/")
    prefix = base.rstrip("/")
    front_page(site, prefix)
    pages = {path: json.loads(path.read_text(encoding="utf-8")) for path in sorted(site.glob("data/documentation/**/*.json"))}
    pages[site / "data/documentation.json"] = json.loads((site / "data/documentation.json").read_text(encoding="utf-8"))
    headings = {path: set(anchors(page)) for path, page in pages.items()}
    folders, problems, links = catalogs(), set(), 0
    for path, page in pages.items():
        name = path.relative_to(site / "data/documentation" if "documentation" in path.parts else site / "data")
        changed = False
        if path.parent == site / "data/documentation":
            link_front_page(page)
            changed = True
        for reference in page.get("references", {}).values():
            kind, url = reference.get("type"), reference.get("url", "")
            if kind in ("topic", "section"):
                links += 1
                address, _, anchor = url.partition("#")
                target = site / ("data" + address + ".json")
                if target not in pages:
                    problems.add(f"{name}: {url} does not exist.")
                elif anchor and anchor.lower() not in headings[target]:
                    problems.add(f"{name}: {url} is not a heading of that page.")
            elif kind == "image":
                for variant in reference["variants"]:
                    links += 1
                    if not (site / variant["url"].removeprefix(prefix).lstrip("/")).is_file():
                        problems.add(f"{name}: the image {variant['url']} does not exist.")
            elif kind == "link" and not re.match(r"(https?|mailto):", url):
                links += 1
                file = (folders.get(name.parts[0], ROOT) / url.partition("#")[0]).resolve()
                if not file.is_file() or ROOT not in file.parents:
                    problems.add(f"{name}: the file {url} does not exist.")
                    continue
                # Web servers show text files in the browser, but offer other files for download.
                copy = pathlib.Path("source") / (str(file.relative_to(ROOT)) + ".txt")
                (site / copy).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, site / copy)
                reference["url"] = f"{prefix}/{copy}"
                changed = True
        if changed:
            write(path, page)
    print(f"{len(pages)} pages, {links} links.")
    fail(problems)


def link_front_page(page):
    """Adds a link to the front page above the title of a module's page. Other pages link to the page of their module there."""
    front = "doc://transferkit/documentation"
    page["hierarchy"]["paths"] = [[front]]
    page["references"][front] = {
        "type": "topic", "kind": "article", "role": "collection", "title": "All modules", "url": "/documentation", "identifier": front,
        "abstract": []}


def front_page(site, prefix):
    """Groups the modules on the page that lists all of them, adds the articles to start with, and redirects the root of the site to this page."""
    path = site / "data/documentation.json"
    page = json.loads(path.read_text(encoding="utf-8"))
    page["metadata"]["title"] = "TransferKit"
    page["abstract"] = [{"type": "text", "text": INTRODUCTION}]
    identifiers = {reference["url"].split("/")[-1]: key for key, reference in page["references"].items()}
    listed = [name.lower() for names in GROUPS.values() for name in names]
    if sorted(listed) != sorted(identifiers):
        sys.exit(f"The front page lists {sorted(listed)}, but the modules are {sorted(identifiers)}.")
    page["topicSections"] = [
        {"title": title, "anchor": title.replace(" ", "-"), "identifiers": [identifiers[name.lower()] for name in names]}
        for title, names in GROUPS.items()
    ]
    start = []
    for article in START:
        module, address = article.split("/")[0].lower(), f"/documentation/{article.lower()}"
        overview = json.loads((site / f"data/documentation/{module}.json").read_text(encoding="utf-8"))
        reference = next((value for value in overview["references"].values() if value.get("url") == address), None)
        if reference is None:
            sys.exit(f"The front page lists {article}, which the overview of its module does not list.")
        page["references"][reference["identifier"]] = reference
        start.append(reference["identifier"])
    page["topicSections"].insert(0, {"title": "Start here", "anchor": "Start-here", "identifiers": start})
    page["topicSectionsStyle"] = "list"
    write(path, page)

    # Each page requests this file, and the browser reports an error if it does not exist.
    write(site / "theme-settings.json", {})

    # The list of pages beside each page has the same groups.
    path = site / "index/index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    root = index["interfaceLanguages"]["swift"][0]
    modules = {module["path"].split("/")[-1]: module for module in root["children"]}
    root["title"] = "TransferKit"
    root["children"] = []
    for title, names in GROUPS.items():
        root["children"] += [{"title": title, "type": "groupMarker"}, *[modules[name.lower()] for name in names]]
    write(path, index)

    (site / "index.html").write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>TransferKit</title>'
        f'<meta http-equiv="refresh" content="0; url={prefix}/documentation/"><a href="{prefix}/documentation/">TransferKit</a></html>\n',
        encoding="utf-8")


if __name__ == "__main__":
    {"products": products, "comments": comments, "finish": finish}[sys.argv[1]](*sys.argv[2:])
