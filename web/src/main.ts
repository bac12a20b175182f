import { mount } from 'svelte';
import './app.css';
import './theme.css';
import { applyAppearance } from './store/appearance';
import { language } from './text/messages/language';
import App from './ui/shell/App.svelte';

document.documentElement.lang = language;
applyAppearance();
mount(App, { target: document.getElementById('app')! });
