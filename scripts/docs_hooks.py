"""What mkdocs.yml cannot say. The order of the pages is that of docs/README.md, and files that pages name outside of docs/ are
copied into the site, below source/."""
import ast
import posixpath
import re
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r'(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))')


def groups(text):
    """[(title of a section, [page])] of the tables of docs/README.md."""
    sections = re.split(r'^## (.*)$', text, flags=re.M)[1:]
    return [(title, re.findall(r'^\| \[([\w-]+\.md)\]', body, re.M)) for title, body in zip(sections[::2], sections[1::2])]


def outside(page):
    """The files outside of docs/ that a page of docs/ names, from the root."""
    names = (posixpath.normpath('docs/' + name) for name, _ in LINK.findall(page.read_text(encoding='utf-8')) if name.startswith('../'))
    return {name for name in names if (ROOT / name).is_file()}


def on_config(config):
    index = (ROOT / 'docs' / 'README.md').read_text(encoding='utf-8')
    config.nav = [{'hvdrun': 'README.md'}] + [{title: pages} for title, pages in groups(index)]
    return config


def on_files(files, config):
    for name in sorted(set().union(*(outside(page) for page in (ROOT / 'docs').glob('*.md')))):
        files.append(File.generated(config, 'source/' + name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links out of docs/ lead to the copies; copies keep their text, and the links that have a copy."""
    own = page.file.src_uri
    copy = own.startswith('source/')

    def there(match):
        name, anchor = match.group(1), match.group(2) or ''
        if re.match(r'[a-z]+:', name):
            return match.group(0)
        target = posixpath.normpath(posixpath.join(posixpath.dirname(own[len('source/'):] if copy else 'docs/' + own), name))
        uri = target[len('docs/'):] if target.startswith('docs/') else 'source/' + target
        if files.get_file_from_path(uri) is None:
            return 'source-tree' if copy else match.group(0)
        return posixpath.relpath(uri, posixpath.dirname(own) or '.') + anchor

    changed = LINK.sub(there, markdown)
    return re.sub(r'\[([^\]]*)\]\(source-tree\)', r'\1', changed)


def public_functions(module):
    """The functions and classes of a module that its users call."""
    path = ROOT / 'runtime/python' / module.replace('.', '/')
    file = path / '__init__.py' if path.is_dir() else path.with_suffix('.py')
    tree = ast.parse(file.read_text(encoding='utf-8'))
    return [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith('_')]


def missing_from(html, source):
    """What the pages of the directives `:::` should show and do not: an entry with a description for each name."""
    missing = []
    for name, members in re.findall(r'^::: (horovod[\w.]*)\n(?:    options:\n      members: \[(.*)\]\n)?', source, re.M):
        names = members.split(', ') if members else public_functions(name) if name.rpartition('.')[2][:1].islower() else []
        for wanted in (f'{name}.{member}' for member in names):
            entry = html.partition(f'id="{wanted}"')[2][:50_000].partition(' class="doc doc-heading"')[2]
            text = re.split(r'class="doc doc-heading"', entry)[0]
            if not re.search(r'<p>\s*\S', text.partition('doc-contents')[2]):
                missing.append(wanted)
    return missing


def on_post_page(output, page, config):
    """The reference is made by a plug-in: a site that shows the names of modules alone is no reference."""
    if page.file.src_uri == 'api.md':
        missing = missing_from(output, (ROOT / 'docs/api.md').read_text(encoding='utf-8'))
        if missing:
            raise PluginError(f'docs/api.md: {len(missing)} functions have no entry with a description, such as {missing[0]}')
    return output
