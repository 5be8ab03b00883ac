{
  const svg = document.documentElement
  const row = Number(svg.dataset.row)
  const letter = Number(svg.dataset.letter)
  const margin = 10
  const line = 18
  const head = document.getElementById('head')
  const legend = document.getElementById('legend')
  const layer = document.getElementById('boxes')

  // The boxes in their order, depth first: a box begins where its caller does, behind its siblings on the left.
  const boxes = []
  const open = []
  for (const g of layer.children) {
    const depth = Number(g.dataset.d)
    const samples = Number(g.dataset.n)
    open.length = depth
    const caller = open[depth - 1]
    const start = caller ? caller.next : 0
    const [name, numbers] = g.firstChild.textContent.split('\n')
    const box = { g, depth, samples, start, next: start, caller, name, numbers, index: boxes.length }
    if (caller) caller.next += samples
    open[depth] = box
    boxes.push(box)
  }
  const deepest = boxes.reduce((most, box) => Math.max(most, box.depth), 0)
  const all = boxes[0]

  // What stands over the boxes in a browser only.
  const create = (parent, name, text) => {
    const element = document.createElementNS('http://www.w3.org/1999/xhtml', name)
    if (text) element.textContent = text
    parent.append(element)
    return element
  }
  const place = document.createElementNS(svg.namespaceURI, 'foreignObject')
  place.setAttribute('x', margin)
  place.setAttribute('y', 6)
  place.setAttribute('height', 28)
  const tools = create(place, 'div')
  tools.id = 'tools'
  const input = create(tools, 'input')
  input.type = 'search'
  input.placeholder = 'Search: text or regex ( / )'
  input.setAttribute('aria-label', 'Search')
  const found = create(tools, 'output')
  const reset = create(tools, 'button', 'Zoom out')
  reset.title = 'Esc'
  const flip = create(tools, 'button', 'Flip')
  flip.title = 'Callers on top or at the bottom'
  const status = create(tools, 'output')
  const shift = 32
  for (const element of head.children) {
    if (element.localName !== 'rect') element.setAttribute('transform', `translate(0 ${shift})`)
  }
  head.append(place)

  // The state is in the address, so that a view can be linked and the browser's back button undoes.
  const state = () => {
    const parameters = new URLSearchParams(location.hash.slice(1) || location.search)
    return {
      search: parameters.get('s') || '',
      zoom: boxes[Number(parameters.get('z'))] || all,
      upright: parameters.get('u') === '1',
    }
  }
  const go = (change, replace) => {
    const next = { ...state(), ...change }
    const parameters = new URLSearchParams()
    if (next.search) parameters.set('s', next.search)
    if (next.zoom !== all) parameters.set('z', next.zoom.index)
    if (next.upright) parameters.set('u', '1')
    const hash = `#${parameters}`
    if (replace) {
      history.replaceState(null, '', hash)
      show()
    } else if (hash !== (location.hash || '#')) {
      location.hash = hash
    } else {
      show()
    }
  }

  // Processes, threads and remarks are known by both ends of their names.
  const label = ({ g, name }, columns) => {
    if (!g.classList.contains('heading') || name.length <= columns) return narrowName(name, columns)
    const end = Math.floor(columns / 2)
    return `${name.slice(0, columns - end - 1)}…${name.slice(name.length - end)}`
  }

  let width, top, height, upright, zoom
  const draw = () => {
    const scale = (width - 2 * margin) / Math.max(1, zoom.samples)
    const end = zoom.start + zoom.samples
    for (const box of boxes) {
      const outside = box.start >= end || box.start + box.samples <= zoom.start
      box.g.classList.toggle('outside', outside)
      if (outside) continue
      const above = box.depth < zoom.depth
      box.g.classList.toggle('above', above)
      const from = Math.max(box.start, zoom.start)
      const x = margin + (from - zoom.start) * scale
      const wide = Math.max(0, (Math.min(box.start + box.samples, end) - from) * scale - 0.5)
      const y = top + (upright ? deepest - box.depth : box.depth) * row
      const rect = box.g.children[1]
      rect.setAttribute('x', x)
      rect.setAttribute('y', y)
      rect.setAttribute('width', wide)
      let text = box.g.children[2]
      const columns = Math.floor((wide - 6) / letter)
      if (!text && columns < 3) continue
      if (!text) {
        text = document.createElementNS(svg.namespaceURI, 'text')
        box.g.append(text)
      }
      text.textContent = columns < 3 ? '' : label(box, columns)
      text.setAttribute('x', x + 3)
      text.setAttribute('y', y + 12)
    }
  }

  const search = text => {
    layer.classList.toggle('searched', text !== '')
    let pattern
    try {
      pattern = new RegExp(text, 'i')
    } catch {
      // Text, then.
    }
    const lower = text.toLowerCase()
    let samples = 0
    let count = 0
    let inside = -1
    for (const box of boxes) {
      const matches = text !== '' && (box.name.toLowerCase().includes(lower) || pattern?.test(box.name))
      box.g.classList.toggle('found', matches)
      if (!matches) continue
      count++
      // A sample counts once, however many boxes of its stack match.
      if (box.start >= inside) {
        samples += box.samples
        inside = box.start + box.samples
      }
    }
    const percent = 100 * samples / Math.max(1, all.samples)
    found.textContent = text === '' ? '' : `${percent.toFixed(2)} % in ${count.toLocaleString('en')} box${count === 1 ? '' : 'es'}`
  }

  const layout = () => {
    svg.removeAttribute('viewBox')
    svg.setAttribute('width', '100%')
    width = Math.max(200, svg.getBoundingClientRect().width)
    place.setAttribute('width', width - 2 * margin)
    let x = margin
    let y = Number(legend.dataset.y)
    for (const key of legend.children) {
      const wide = 16 + (key.textContent.length - key.firstChild.textContent.length + 2) * letter
      if (x + wide > width - margin && x > margin) [x, y] = [margin, y + line]
      key.setAttribute('transform', `translate(${x} ${y})`)
      x += wide
    }
    top = shift + y + (legend.children.length ? line : 0) + 6
    head.firstChild.setAttribute('height', top)
    height = top + (deepest + 1) * row + line
    svg.setAttribute('height', height)
  }

  const show = () => {
    const next = state()
    const moved = next.zoom !== zoom || next.upright !== upright
    zoom = next.zoom
    upright = next.upright
    draw()
    if (document.activeElement !== input) input.value = next.search
    search(next.search)
    reset.disabled = zoom === all
    // The box that was zoomed to is the first in sight, with its nearest callers.
    if (moved) {
      const y = (upright ? deepest - zoom.depth : zoom.depth) * row
      const callers = 2 * row
      // Room to scroll to the deepest ones too.
      svg.setAttribute('height', upright ? height : Math.max(height, y - callers + innerHeight))
      scrollTo(0, upright ? y + top + row + callers - innerHeight : y - callers)
    }
  }

  // The head stays in sight.
  addEventListener('scroll', () => head.setAttribute('transform', `translate(0 ${scrollY})`))
  addEventListener('resize', () => { layout(); draw() })
  addEventListener('hashchange', show)
  layer.addEventListener('click', event => {
    const box = boxes.find(box => box.g === event.target.closest('#boxes > g'))
    if (box) go({ zoom: box })
  })
  layer.addEventListener('mouseover', event => {
    const g = event.target.closest('#boxes > g')
    if (g) status.textContent = g.firstChild.textContent.split('\n').reverse().join('  ')
  })
  layer.addEventListener('mouseout', () => { status.textContent = '' })
  input.addEventListener('input', () => go({ search: input.value }, true))
  reset.addEventListener('click', () => go({ zoom: all }))
  flip.addEventListener('click', () => go({ upright: !upright }))
  addEventListener('keydown', event => {
    if (event.key === 'Escape') {
      if (input.value) {
        input.value = ''
        go({ search: '' }, true)
      } else {
        go({ zoom: all })
      }
      input.blur()
    } else if (event.key === '/' && document.activeElement !== input) {
      input.focus()
      event.preventDefault()
    }
  })

  layout()
  show()
}
