// What scripts/check-svg does in the browser. The argument is the folder of the pictures.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { chromium } from 'playwright-core'

const folder = process.argv[2]
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-dev-shm-usage'],
})
const problems = []
const open = async (file, width, height) => {
  const page = await browser.newPage({ viewport: { width, height } })
  page.on('pageerror', error => problems.push(String(error)))
  page.on('dialog', dialog => problems.push(dialog.message()))
  page.on('request', request => request.url().startsWith('file:') || problems.push(request.url()))
  await page.goto(`file://${folder}/${file}`)
  return page
}
const result = page => page.locator('#tools output').first().innerText()
const boxes = page =>
  page.evaluate(() =>
    [...document.querySelectorAll('#boxes > g')].map(g => {
      const { top, left, width } = g.children[1].getBoundingClientRect()
      return { name: g.firstChild.textContent.split('\n')[0], top, left, width, shown: !g.matches('.outside') }
    }))
const click = (page, index) =>
  page.evaluate(index => {
    document.querySelectorAll('#boxes > g')[index].children[1].dispatchEvent(new MouseEvent('click', { bubbles: true }))
  }, index)
const settled = page => page.waitForTimeout(200)

// The inclusive share of a function, in one picture and in the table.
const page = await open('icicle.svg', 1000, 400)
const { kept, rows } = JSON.parse(readFileSync(`${folder}/top.json`))
for (const row of rows.filter(row => row.name.includes('!')).sort((a, b) => b.inclusive - a.inclusive).slice(0, 10)) {
  // The name and nothing behind it.
  const pattern = `^${row.name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`
  await page.locator('#tools input').fill(pattern)
  assert.equal((await result(page)).split(' in ')[0], `${(100 * row.inclusive / kept).toFixed(2)} %`, row.name)
}
assert.ok(page.url().includes('#s='), 'the search is in the address')
await page.keyboard.press('Escape')
assert.equal(await result(page), '')

// A zoom fills the width and is in sight; back undoes it.
const before = await boxes(page)
const deep = before.length - 1 - [...before].reverse().findIndex(box => box.top > 420 && box.width > 5)
await click(page, deep)
await settled(page)
const [zoomed] = (await boxes(page)).slice(deep)
const head = await page.evaluate(() => document.getElementById('head').getBoundingClientRect())
assert.ok(Math.abs(zoomed.width - 980) < 2, `${zoomed.width} wide`)
assert.ok(zoomed.top >= head.bottom - 1 && zoomed.top < 400, `at ${zoomed.top}`)
assert.equal(head.top, 0, 'the head stays in sight')
await page.goBack()
await settled(page)
assert.deepEqual((await boxes(page)).map(box => box.width), before.map(box => box.width))

// Flip puts each box as far from the bottom as it was from the top.
const page2 = await open('icicle.svg', 1000, 2000)
const down = await boxes(page2)
await page2.getByText('Flip').click()
await settled(page2)
const up = await boxes(page2)
const sums = new Set(down.map((box, index) => Math.round(box.top + up[index].top)))
assert.equal(sums.size, 1)
assert.ok(up[0].top > up[1].top)

// The classic graph has the same boxes; those too narrow for it are left out.
const classic = await open('classic.flame.svg', 1200, 2000)
const titles = await classic.evaluate(() => [...document.querySelectorAll('#frames > g > title')].map(title => title.textContent))
assert.ok(titles.includes(`all (${kept.toLocaleString('en')} samples, 100%)`))
assert.ok(titles.length > 50)

// A phone: nothing is wider than the window.
const phone = await open('icicle.svg', 400, 700)
assert.ok(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth))
assert.ok((await boxes(phone)).every(box => box.left + box.width <= 400))

// Names are text.
const hostile = await open('hostile.svg', 1000, 700)
const names = (await boxes(hostile)).map(box => box.name)
assert.ok(names.some(name => name.startsWith('<i>&"</g>;')), 'the name is there')
assert.equal(await hostile.evaluate(() => document.querySelectorAll('i, script').length), 1, 'one script, ours')

assert.deepEqual(problems, [])
console.log('flame graphs: search, zoom, back, flip, narrow and hostile are as they should be')
await browser.close()
