// Names in little room, as in `narrow.rs`; a part of every script that draws names.
// The method stays as long as there is room for it: first namespaces go, then the module, then arguments, then its end.
const nameParts = name => {
  const starts = [0]
  let depth = 0
  for (let at = 0; at < name.length; at++) {
    const c = name[at]
    if ('<([{'.includes(c)) depth++
    else if ('>)]}'.includes(c)) depth = Math.max(0, depth - 1)
    else if (!depth && (c === '.' && name[at - 1] !== '.' || c === ':' && name[at - 1] === ':')) starts.push(at + 1)
  }
  return starts
}
const withoutArguments = name => {
  let text = ''
  let depth = 0
  let before = ' '
  for (const c of name) {
    if (depth > 0 && (c === ')' || c === '>' && before !== '-')) depth--
    if (!depth) text += c
    else if (depth === 1 && text.endsWith(before)) text += '…'
    if (c === '<' || c === '(') depth++
    before = c
  }
  return depth ? name : text
}
const narrowName = (name, columns) => {
  if (name.length <= columns) return name
  // Of code without a name the module is all there is.
  if (/^[^!]+!(\?|0x)/.test(name)) return columns < 3 ? '' : `${name.slice(0, columns - 1)}…`
  const at = name.indexOf('!')
  const [module, method] = at < 0 ? ['', name] : [name.slice(0, at + 1), name.slice(at + 1)]
  const bare = withoutArguments(method)
  for (const form of [method, bare]) {
    const starts = nameParts(form)
    for (const start of starts) {
      const text = `${module}${start ? '…' : ''}${form.slice(start)}`
      if (text.length <= columns && (starts.length === 1 || start < starts[starts.length - 1])) return text
    }
  }
  for (const form of [method, bare]) {
    const text = `…${form.slice(nameParts(form).pop())}`
    if (text.length <= columns) return text
  }
  return columns < 3 ? '' : `${bare.slice(nameParts(bare).pop()).slice(0, columns - 1)}…`
}
