// Entry of the site: styles, theme, then the Svelte app.
import '@fontsource-variable/nunito/wght.css';
import './app.css';
import { mount } from 'svelte';
import App from './App.svelte';
import { signInFromAddress } from './lib/signinlink';
import { theme } from './lib/theme.svelte';

theme.apply();
await signInFromAddress();

const target = document.getElementById('app');
if (!target) throw new Error('index.html has no #app element');
mount(App, { target });
