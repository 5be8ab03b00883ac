// speedscope in a browser without a window: `node speedscope.mjs FOLDER BROWSER FILE`, where FOLDER has its packages.
// Prints what it shows of FILE's first profile as JSON: who read it, the title of the page, and the table of functions,
// sorted both ways.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createRequire } from 'node:module';

const [folder, browser, file] = process.argv.slice(2);
const { chromium } = createRequire(path.resolve(folder, 'package.json'))('playwright-core');
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'speedscope-'));
// Without a server it opens what a script at this place gives it.
const script = path.join(scratch, 'load.js');
const [name, bytes] = [path.basename(file), fs.readFileSync(file).toString('base64')];
fs.writeFileSync(script, `speedscope.loadFileFromBase64(${JSON.stringify(name)}, ${JSON.stringify(bytes)})`);
const flags = ['--no-sandbox', '--disable-dev-shm-usage', '--allow-file-access-from-files', '--enable-unsafe-swiftshader'];
const opened = await chromium.launch({ executablePath: browser, args: flags });
try {
  // The table draws only the rows that are to be seen.
  const page = await opened.newPage({ viewport: { width: 1600, height: 1200 } });
  const said = [];
  page.on('console', (message) => said.push(message.text()));
  page.on('pageerror', (error) => said.push(`error: ${error}`));
  page.on('dialog', (dialog) => { said.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  const home = path.resolve(folder, 'node_modules/speedscope/dist/release/index.html');
  await page.goto(`file://${home}#localProfilePath=${script}`);
  await page.waitForFunction(() => document.title.includes(' - speedscope'), null, { timeout: 60000 });
  await page.keyboard.press('3');
  // There is another table, of the profiles.
  const header = page.getByRole('columnheader', { name: 'Total', exact: true });
  const rows = () => page.evaluate(() => [...document.querySelectorAll('tr')]
    .map((row) => [...row.querySelectorAll('td')].map((cell) => cell.innerText.trim()))
    .filter(([total, self]) => total?.endsWith('%)') && self?.endsWith('%)')));
  await header.waitFor();
  const self = await rows();
  await header.click();
  await page.waitForTimeout(200);
  const total = await rows();
  console.log(JSON.stringify({ title: await page.title(), text: await page.innerText('body'), said, self, total }));
} finally {
  await opened.close();
  fs.rmSync(scratch, { recursive: true });
}
