"""Writes an article for each command of a program, with the text of its --help; for a program without commands, one article.

Usage: commands.py PROGRAM FOLDER
"""
import json
import os
import re
import subprocess
import sys

PROGRAM, FOLDER = sys.argv[1:]
NAME = os.path.basename(PROGRAM)


def output(*arguments):
    # A wide terminal prevents line breaks in the usage.
    environment = {**os.environ, "COLUMNS": "1000"}
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=True, env=environment).stdout


def escaped(text):
    """Text as Markdown without markup, except that options and variables are code."""
    parts = re.split(r"((?<![\w-])--?[A-Za-z][\w-]*|\$\w+)", text)
    return "".join(f"`{part}`" if index % 2 else re.sub(r"([\\`*_<>\[\]|#])", r"\\\1", part) for index, part in enumerate(parts))


def prose(text):
    """A discussion as Markdown. Examples become blocks of code."""
    lines, examples = [], []
    for line in text.splitlines() + [""]:
        if line.startswith("Example: "):
            examples.append(line.removeprefix("Example: "))
            continue
        if examples:
            lines += ["", "```sh", *examples, "```", ""]
            examples = []
        lines.append(escaped(line))
    return lines


def subcommands(command):
    return [item for item in command.get("subcommands", []) if item["shouldDisplay"] and item["commandName"] != "help"]


def article(words):
    """The name of the article of a command."""
    return "-".join([NAME, *words]) if words else "Options"


def syntax(argument):
    """An argument as in the list of options: -s, --long <value>."""
    value = f" <{argument['valueName']}>" if argument["kind"] == "option" else ""
    if argument["kind"] == "positional":
        return f"<{argument['valueName']}>" + (" ..." if argument["isRepeating"] else "")
    dashes = {"short": "-", "long": "--", "longWithSingleDash": "-"}
    return ", ".join(dashes[name["kind"]] + name["name"] for name in argument["names"]) + value


def explanation(argument):
    text = argument.get("abstract", "")
    values, default = argument.get("allValues"), argument.get("defaultValue")
    if values and not all(value in text for value in values):
        text += f" (values: {', '.join(values)}" + (f"; default: {default})" if default else ")")
    elif default and "(default:" not in text:
        text = f"{text.removesuffix('.')} (default: {default})."
    return [escaped(text)] + [escaped(line) for line in argument.get("discussion", "").splitlines()]


def arguments(title, items):
    lines = [f"## {title}", ""] if items else []
    for item in items:
        first, *rest = explanation(item)
        lines += [f"- term `{syntax(item)}`: {first}"] + ["  " + line if line else "" for line in rest]
    return lines + [""]


def links(title, names):
    return [f"### {title}", "", *[f"- <doc:{name}>" for name in names], ""]


def save(name, lines):
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"
    with open(os.path.join(FOLDER, name + ".md"), "w", encoding="utf-8") as file:
        file.write(text)


def write(command, words):
    """Writes the articles of a command and of its subcommands."""
    usage = re.search(r"^USAGE: (.*)$", output(*words, "--help"), re.MULTILINE)[1]
    shown = [item for item in command.get("arguments", []) if item["shouldDisplay"]]
    title = " ".join([NAME, *words]) if words else f"Options of {NAME}"
    lines = [f"# {title}", "", escaped(command["abstract"]), "", "## Overview", "", "```", usage, "```", ""]
    aliases = command.get("aliases") or []
    if aliases:
        lines += [f"Other name: {', '.join(f'`{alias}`' for alias in aliases)}.", ""]
    lines += prose(command.get("discussion", ""))
    lines += arguments("Arguments", [item for item in shown if item["kind"] == "positional"])
    options = [item for item in shown if item["kind"] != "positional"]
    for section in dict.fromkeys(item.get("sectionTitle", "Options") for item in options):
        lines += arguments(section, [item for item in options if item.get("sectionTitle", "Options") == section])
    if subcommands(command):
        lines += ["## Topics", ""] + links("Subcommands", [article([*words, item["commandName"]]) for item in subcommands(command)])
    save(article(words), lines)
    for subcommand in subcommands(command):
        write(subcommand, [*words, subcommand["commandName"]])


def write_all(root):
    """Writes the articles of all commands, and an article with the groups of the commands."""
    lines = ["# Commands", "", f"All commands of {NAME}, with the text of their `--help`.", "", "## Overview", ""]
    lines += prose(root["discussion"]) + ["", "## Topics", ""]
    listed = set()
    for title, text in re.findall(r"^(?:([A-Z ]+) )?SUBCOMMANDS:\n((?:  .*\n)+)", output("--help"), re.MULTILINE):
        names = re.findall(r"^  (\w+)", text, re.MULTILINE)
        lines += links(title.capitalize() or "Subcommands", [article([name]) for name in names])
        listed.update(names)
    commands = {item["commandName"]: item for item in subcommands(root)}
    if listed != set(commands):
        sys.exit(f"The help of {NAME} lists {sorted(listed)}, but the commands are {sorted(commands)}.")
    save("Commands", lines)
    for name, command in commands.items():
        write(command, [name])


os.makedirs(FOLDER)
root = json.loads(output("--experimental-dump-help"))["command"]
if subcommands(root):
    write_all(root)
else:
    write(root, [])
